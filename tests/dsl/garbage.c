/* tests/dsl/garbage.c - bytes of a declaration are overwritten at random; nothing may crash, under
 * ASan and UBSan least of all. FUZZ=100000 is how many rounds. */
#include "tests/dsl/test.h"

static uint32_t random_state = 1;

static uint32_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

static void overwrite(void *bytes, size_t size, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        ((uint8_t *)bytes)[next_random() % size] =
            (uint8_t)(next_random() % 3 ? next_random() % 20 : next_random());
}

/* A C programmer gets pointers wrong by leaving them out. */
static const char *random_name(const char *name)
{
    static const char *const names[] = {
        NULL, "", "x", "a name", "a-name-that-is-longer-than-any-may-be", "\xff\x01"};
    return next_random() % 8 ? name : names[next_random() % TG_COUNT(names)];
}

#define OR_NULL(pointer) (next_random() % 64 ? (pointer) : NULL)

static void mend_pointers(struct copy *c, const tg_variant *variant)
{
    static struct copy intact;
    copy_variant(&intact, variant);
    for (uint32_t i = 0; i < TG_MAX_TILES; i++)
        c->tensors[i].name = random_name(intact.tensors[i].name);
    for (uint32_t i = 0; i < TG_MAX_BODY; i++)
        c->body[i].file = random_name("x.c");
    for (uint32_t i = 0; i < TG_MAX_ROWS; i++)
        c->schedule.rows[i].name = random_name(intact.schedule.rows[i].name);
    for (uint32_t i = 0; i < TG_MAX_SCALARS; i++)
        c->scalars[i].name = random_name(intact.scalars[i].name);
    c->algorithm.scalars = variant->algorithm->scalars ? OR_NULL(c->scalars) : NULL;
    c->algorithm.name = random_name("good");
    c->algorithm.title = random_name("title");
    c->algorithm.file = c->schedule.file = c->space.file = random_name("x.c");
    c->schedule.name = random_name("tfla");
    c->space.name = random_name("tfla");
    c->variant.name = random_name("good");
    c->algorithm.tensors = OR_NULL(c->tensors);
    c->algorithm.body = OR_NULL(c->body);
    c->schedule.algorithm = OR_NULL(&c->algorithm);
    c->space.schedule = OR_NULL(&c->schedule);
    c->space.vary = OR_NULL(c->vary);
    c->variant.algorithm = OR_NULL(&c->algorithm);
    c->variant.schedules = OR_NULL(c->schedules);
    c->schedule.points = NULL;
    for (uint32_t i = 0; i < MOST_VARIED; i++)
        for (uint32_t k = 0; k < TG_MAX_VARIED; k++)
            c->vary[i].rows[k] = random_name(intact.vary[i].rows[k]);
    c->variant.spaces = OR_NULL(c->spaces);
    if (next_random() % 16) {
        c->algorithm.struct_size = sizeof c->algorithm;
        c->schedule.struct_size = sizeof c->schedule;
        c->space.struct_size = sizeof c->space;
        c->algorithm.version = c->schedule.version = c->space.version = TG_DSL_VERSION;
    }
}

static void count_message(void *user, const tg_diag *diag)
{
    *(uint64_t *)user += strlen(diag->message) + strlen(diag->code);
}

static void count_text(void *user, const char *text, size_t bytes)
{
    (void)text;
    *(uint64_t *)user += bytes;
}

void test_garbage(void **state)
{
    (void)state;
    static struct copy c;
    const char *text = getenv("FUZZ");
    const uint32_t rounds = text ? (uint32_t)strtoul(text, NULL, 10) : 20000;
    uint64_t total = 0;
    const tg_sink sink = {count_message, &total};
    const tg_writer writer = {count_text, &total};
    for (uint32_t round = 0; round < rounds; round++) {
        const tg_variant *variant = next_random() % 2 ? &good : &forms;
        copy_variant(&c, variant);
        overwrite(c.tensors, variant->algorithm->n_tensors * sizeof *c.tensors, next_random() % 4);
        overwrite(c.body, variant->algorithm->n_body * sizeof *c.body, next_random() % 6);
        overwrite(c.scalars, sizeof c.scalars, next_random() % 3);
        overwrite(&c.schedule, sizeof c.schedule, next_random() % 6);
        overwrite(c.vary, variant->spaces[0]->n_vary * sizeof *c.vary, next_random() % 3);
        overwrite(&c.algorithm, sizeof c.algorithm, next_random() % 3 == 0);
        overwrite(&c.space, sizeof c.space, next_random() % 3 == 0);
        mend_pointers(&c, variant);
        (void)tg_variant_check(&c.variant, &sink);
        (void)tg_space_check(&c.space, &sink);
        (void)tg_schedule_check(&c.schedule, &sink);
        tg_algorithm_print(&c.algorithm, &writer);
        tg_schedule_print(&c.schedule, &writer);
        tg_schedule_key(&c.schedule, &writer);
        tg_schedule_diff(good.schedules[0], &c.schedule, &writer);
        char field[24];
        for (uint32_t i = 0; i < sizeof field; i++)
            field[i] = "chunkHLq=.0123456789 \n\xff"[next_random() % 23];
        field[sizeof field - 1] = '\0';
        (void)tg_schedule_apply(field, &c.schedule, &sink);
    }
    assert_true(total > 0 || rounds == 0);
}
