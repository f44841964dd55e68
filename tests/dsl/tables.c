/* tests/dsl/tables.c - a schedule that is a table: what there is of it for an algorithm, a cut and what is kept. */
#include "tests/dsl/test.h"

enum { GONE = N_GOOD + 3 }; /* a tile that good has not */

static const tg_point points[] = {
    {.name = "whole"},
    {.name = "cut", .changes = "seg=8 state.Lkv=32", .by_name = TG_NAMED},
    {.name = "of-others", .has = GONE},
    {.name = "narrow", .changes = "H.warps=4 H.dhv=P/32", .lacks = GONE},
    {.name = "keeps", .changes = "seg=4", .kept = {GONE, C}, .max_tokens = 7},
    {.name = NULL},
};
static const tg_schedule table = {
    TG_HEADER(tg_schedule),
    .name = "table",
    .file = __FILE__,
    .chunk = 64,
    .points = points,
    .rows =
        {
            {.name = "gates",
             .outputs = {G, GONE},
             .warps = 2,
             .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(64)}},
            {.name = "gone", .outputs = {GONE}, .warps = 2, .row = {[TG_CHUNK] = TG_W(64)}},
            {.name = "state",
             .outputs = {GONE, C},
             .only = TG_IF_CUT | TG_IF_NOT_KEPT,
             .mma = TG_MMA_SYNC,
             .warps = 4,
             .row = {[TG_SEG] = TG_P(0),
                     [TG_CHUNK] = TG_W(1),
                     [TG_LKV] = TG_L(64),
                     [TG_DQK] = TG_P(64),
                     [TG_DHV] = TG_P(64)}},
            {.name = "compose",
             .outputs = {C},
             .only = TG_IF_CUT | TG_IF_NOT_KEPT,
             .warps = 2,
             .row = {[TG_SEG] = TG_W(0), [TG_DQK] = TG_P(1), [TG_DHV] = TG_P(256)}},
            {.name = "H",
             .outputs = {H},
             .has = GONE,
             .warps = 1,
             .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1)}},
            {.name = "H",
             .outputs = {H},
             .lacks = GONE,
             .mma = TG_MMA_SYNC,
             .warps = 8,
             .row = {[TG_SEG] = TG_P(0),
                     [TG_CHUNK] = TG_W(1),
                     [TG_LQ] = TG_L(64),
                     [TG_LKV] = TG_L(64),
                     [TG_DQK] = TG_L(0),
                     [TG_DHV] = TG_P(64)}},
        },
};

/* "gates G | state C | ..." */
static const char *rows_of(const tg_schedule *schedule)
{
    static char text[512];
    size_t used = 0;
    *text = '\0';
    for (uint32_t r = 0; r < schedule->n_rows; r++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", r ? " | " : "", schedule->rows[r].name);
        for (uint32_t i = 0; i < TG_MAX_OUTPUTS && schedule->rows[r].outputs[i]; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, " %s",
                                     schedule->algorithm->tensors[schedule->rows[r].outputs[i]].name);
    }
    return text;
}

static tg_variant variant_of(const tg_schedule *const *schedules)
{
    static const tg_alias names[] = {{"short", "cut seg=2"}, {NULL, NULL}};
    tg_variant variant = good;
    variant.schedules = schedules;
    variant.spaces = NULL;
    variant.names = names;
    return variant;
}

void test_tables(void **state)
{
    (void)state;
    static const tg_schedule *const schedules[] = {&table, &good_walk, NULL};
    static const char *const rows[] = {"gates g | H h", "gates g | state C | compose C | H h", "gates g | H h",
                                       "gates g | H h", "H h"};
    static const char *const names[] = {"whole", "cut", "narrow", "keeps", "walk"};
    const tg_variant variant = variant_of(schedules);
    tg_schedule s;
    for (uint32_t i = 0; i < TG_COUNT(names); i++) {
        assert_true(tg_variant_schedule(&variant, i, &s));
        assert_string_equal(s.name, names[i]);
        assert_string_equal(rows_of(&s), rows[i]);
        assert_ptr_equal(s.algorithm, good.algorithm);
        assert_int_equal(s.by_name, i == 1 ? TG_NAMED : 0);
        assert_int_equal(s.max_tokens, i == 3 ? 7 : 0);
    }
    assert_false(tg_variant_schedule(&variant, TG_COUNT(names), &s));
    assert_true(tg_variant_schedule(&variant, 0, &s));
    assert_int_equal(s.rows[1].row[TG_SEG].role, TG_ROLE_NONE);
    assert_true(tg_variant_schedule(&variant, 1, &s));
    assert_int_equal(s.rows[1].row[TG_LKV].block, 32);
    assert_int_equal(s.rows[3].row[TG_SEG].block, 8);
    assert_true(tg_variant_schedule(&variant, 3, &s));
    assert_int_equal(s.kept[0], C);
    assert_int_equal(s.kept[1], 0);
}

static void assert_text(const tg_variant *variant, const char *text, const char *expected_rows, const char *expected)
{
    struct log log = {{0}, {0}};
    const tg_writer writer = {collect, &log};
    const tg_sink sink = {remember, &log};
    tg_schedule s;
    if (tg_variant_schedule_named(variant, text, &s, &sink) != TG_OK)
        fail_msg("%s: %s", text, log.text);
    assert_string_equal(rows_of(&s), expected_rows);
    tg_variant_schedule_text(variant, &s, &writer);
    assert_string_equal(log.text, expected);
}

/* A text may cut what is not cut, and the other way round; an alias is the point that it stands for. */
void test_table_texts(void **state)
{
    (void)state;
    static const tg_schedule *const schedules[] = {&table, NULL};
    static const char cut[] = "gates g | state C | compose C | H h", whole[] = "gates g | H h";
    const tg_variant variant = variant_of(schedules);
    struct log log = {{0}, {0}};
    const tg_sink sink = {remember, &log};
    tg_schedule s;
    assert_text(&variant, "whole", whole, "whole");
    assert_text(&variant, " whole  seg=16 state.warps=8", cut, "whole seg=16 state.warps=8");
    assert_text(&variant, "whole H.seg=16 H.warps=4", cut, "whole seg=16 H.warps=4");
    assert_text(&variant, "cut seg=0", whole, "cut seg=0");
    assert_text(&variant, "cut seg=8 chunk=128", cut, "cut chunk=128");
    assert_text(&variant, "short state.Lkv=64", cut, "cut seg=2 state.Lkv=64");
    /* relayed, each row by its own length */
    assert_text(&variant, "whole H.seg=R/4 seg=8", whole, "whole H.seg=R/8");
    assert_text(&variant, "whole gates.seg=R/2 H.seg=R/4", whole, "whole gates.seg=R/2 H.seg=R/4");
    assert_text(&variant, "cut seg=0 H.seg=R/4", whole, "cut seg=0 H.seg=R/4");
    assert_text(&variant, "cut seg=0 H.seg=R/4 H.seg=./0", whole, "cut seg=0");
    assert_int_equal(tg_variant_schedule_named(&variant, "of-others", &s, &sink), TG_E_ARGUMENT);
    assert_int_equal(tg_variant_schedule_named(&variant, "narrow gone.warp=1", &s, &sink), TG_E_ARGUMENT);
    assert_string_equal(log.codes, "TG0243 TG0232");
    assert_non_null(strstr(log.text, "good has: whole cut narrow keeps; changes"));
}

/* Whoever says which algorithm it is for is told of tiles that this has not. */
void test_own_table(void **state)
{
    (void)state;
    static tg_schedule own;
    static const tg_schedule *const schedules[] = {&own, NULL};
    struct log log = {{0}, {0}};
    const tg_sink sink = {remember, &log};
    own = table;
    own.points = NULL;
    own.algorithm = good.algorithm;
    const tg_variant variant = variant_of(schedules);
    (void)tg_variant_check(&variant, &sink);
    assert_non_null(strstr(log.text, "kernel gates writes tile 24, which no statement computes"));
    assert_non_null(strstr(log.text, "kernel gone writes tile 24"));
    own.algorithm = NULL;
    assert_int_equal(tg_schedule_check(&own, &sink), TG_E_DECLARATION);
    assert_non_null(strstr(log.codes, "TG0205"));
}

/* ---- final states alone (dsl/final_states.c) ---- */

/* Schedules that name their algorithm lose it, and what there is none of. */
void test_states_alone(void **state)
{
    (void)state;
    const tg_variant *found = tg_states_of(&good);
    tg_schedule schedule;
    struct log log = {{0}, {0}};
    const tg_sink sink = {remember, &log};
    assert_non_null(found);
    assert_string_equal(found->name, "good-state");
    assert_string_equal(found->algorithm->name, "good-state");
    assert_null(found->backward);
    assert_null(found->oracle);
    assert_int_equal(found->algorithm->n_body, 7);
    assert_null(found->algorithm->tensors[Q].name);
    assert_null(found->algorithm->tensors[H].name);
    assert_string_equal(found->algorithm->tensors[K].name, "k");
    assert_int_equal(found->algorithm->tensors[S].flags, TG_OUT);
    assert_int_equal(good.algorithm->tensors[S].flags, TG_OUT | TG_OPTIONAL);
    assert_int_equal(tg_algorithm_check(found->algorithm, &sink), TG_OK);
    assert_true(tg_variant_schedule(found, 0, &schedule));
    assert_ptr_equal(schedule.algorithm, found->algorithm);
    assert_int_equal(tg_schedule_check(&schedule, &sink), TG_OK);
    for (uint32_t r = 0; r < schedule.n_rows; r++)
        assert_int_equal(schedule.rows[r].row[TG_LQ].role, TG_ROLE_NONE);
    assert_string_equal(log.text, "");
    tg_states_free(found);
    tg_states_free(NULL);
}

/* One state is carried once, however many rows of the whole carry it each for themselves. */
void test_states_alone_once(void **state)
{
    (void)state;
    enum { TWICE = N_GOOD, READ, WRITTEN, N_HERE };
    tg_tensor tensors[N_HERE];
    tg_stmt body[32];
    tg_algorithm algorithm = *good.algorithm;
    tg_variant variant = good;
    uint32_t n = 0;
    memset(tensors, 0, sizeof tensors);
    memcpy(tensors, algorithm.tensors, N_GOOD * sizeof *tensors);
    tensors[TWICE] = (tg_tensor){.name = "twice", .axes = {TG_CHUNK, TG_DQK, TG_DHV}};
    tensors[READ] = (tg_tensor){.name = "read", .axes = {TG_T, TG_DHV}};
    tensors[WRITTEN] = (tg_tensor){.name = "written", .axes = {TG_T, TG_DHV}};
    for (uint32_t i = 0; i < algorithm.n_body; i++) { /* a delta rule: what is written depends on the state */
        if (algorithm.body[i].op == TG_STMT_CARRY) {
            body[n++] = (tg_stmt)TG_CONTRACT_TO(TG_AT_KV(READ), TG_AT_KV(K), C);
            body[n++] = (tg_stmt)TG_MAP_TO(TG_AT_KV(WRITTEN), TG_SUB(TG_KV(V), TG_KV(READ)));
            body[n++] = (tg_stmt)TG_CARRY_TO(C, 0, S0, G, TG_AT_KV(KW), TG_AT_KV(WRITTEN));
            body[n++] = (tg_stmt)TG_CARRY_TO(TWICE, S, S0, G, TG_AT_KV(KW), TG_AT_KV(WRITTEN));
        } else {
            body[n++] = algorithm.body[i];
        }
    }
    algorithm.tensors = tensors;
    algorithm.n_tensors = N_HERE;
    algorithm.body = body;
    algorithm.n_body = n;
    variant.algorithm = &algorithm;
    const tg_variant *found = tg_states_of(&variant);
    assert_non_null(found);
    assert_int_equal(found->algorithm->n_body, 9);
    assert_int_equal(found->algorithm->body[8].out, C);
    assert_int_equal(found->algorithm->body[8].final_, S);
    assert_null(found->algorithm->tensors[TWICE].name);
    tg_states_free(found);
}

/* What has no states has no such program, nor what is no declaration. */
void test_states_alone_of_none(void **state)
{
    (void)state;
    tg_algorithm algorithm = *good.algorithm;
    tg_variant variant = good;
    tg_tensor tensors[N_GOOD];
    memcpy(tensors, algorithm.tensors, sizeof tensors);
    variant.algorithm = &algorithm;
    algorithm.tensors = tensors;
    tensors[S].flags = 0; /* so that it is no output */
    assert_null(tg_states_of(&variant));
    algorithm.body = NULL;
    assert_null(tg_states_of(&variant));
    assert_null(tg_states_of(NULL));
}
