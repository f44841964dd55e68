/* tests/declarations/call.c - the rest of a declaration: random numbers, target, element type, sizes; and its text. */
#include "declare.h"

struct draw draw_of(uint64_t seed)
{
    return (struct draw){{seed, num_stream("declaration")}, 0};
}

uint32_t draw_below(struct draw *draw, uint32_t n)
{
    return (uint32_t)(num_bits(draw->random, draw->n++) >> 33) % n;
}

bool draw_chance(struct draw *draw, uint32_t percent)
{
    return draw_below(draw, 100) < percent;
}

void declare_call(struct draw *draw, struct declaration *d)
{
    struct shape *s = &d->shape;
    d->target = tg_target_find(DRAW(draw, 0, 1) ? "sm_90a" : "sm_80");
    d->io = (tg_dtype)DRAW(draw, TG_BF16, TG_BF16, TG_F16, TG_F32);
    s->group = DRAW(draw, 1, 1, 2);
    s->heads = s->group * DRAW(draw, 1, 2);
    s->batch = DRAW(draw, 1, 2);
    s->tokens = DRAW(draw, 1, 15, 64, 65, 100, 130);
    s->dqk = DRAW(draw, 16, 24, 32, 64);
    s->dhv = DRAW(draw, 16, 32, 40, 64);
    if (d->target->exact && draw_chance(draw, 70))
        s->dqk = s->dhv = 64;
    s->packed = draw_chance(draw, 20);
    d->without_optional = draw_chance(draw, 25);
}

void declare(uint64_t seed, struct declaration *d)
{
    struct draw draw = draw_of(seed);
    *d = (struct declaration){.schedules = {&d->schedule, NULL}};
    declare_call(&draw, d);
    if (draw_chance(&draw, 25)) {
        declare_mutant(&draw, d);
    } else {
        declare_algorithm(&draw, d);
        declare_schedule(&draw, d);
        static const char *const no_aliases[] = {NULL};
        d->variant = (tg_variant){TG_HEADER(tg_variant), .name = "random", .aliases = no_aliases};
    }
    d->variant.algorithm = &d->algorithm;
    d->variant.schedules = d->schedules;
    d->variant.spaces = NULL;
    d->variant.oracle = NULL;
    d->variant.backward = NULL;
}

void print_declaration(const struct declaration *d)
{
    const struct shape *s = &d->shape;
    const tg_writer writer = file_writer(stdout);
    tg_algorithm_print(&d->algorithm, &writer);
    tg_schedule_print(&d->schedule, &writer);
    printf("%s, %s, chunk %u: B=%lld NH=%lld T=%lld dqk=%lld dhv=%lld group=%lld%s%s\n", d->target->arch,
           tg_dtype_name(d->io), d->schedule.chunk, (long long)s->batch, (long long)s->heads, (long long)s->tokens,
           (long long)s->dqk, (long long)s->dhv, (long long)s->group, s->packed ? " packed" : "",
           d->without_optional ? ", nothing optional" : "");
}
