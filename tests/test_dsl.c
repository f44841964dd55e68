/* tests/test_dsl.c - the checker and the slices of declarations. The texts are tests/dsl/text.c,
 * the mistakes tests/dsl/bad.def. */
#include "tests/dsl/test.h"
#include "tests/usage.h"

#include <math.h>

/* A tile more, for mutations that need one. */
static void add_spare(struct copy *c)
{
    c->tensors[SPARE] = (tg_tensor){"spare", TG_F32, 0, {TG_T}, 0};
    c->algorithm.n_tensors = N_GOOD + 1;
}

/* One more tensor, by the number SPARE or SPARE + 1, and one more statement at the end, of good.c.
 */
static void add_tensor(struct copy *c, const char *name, uint8_t flags, uint8_t axis, uint8_t second)
{
    c->tensors[c->algorithm.n_tensors++] = (tg_tensor){name, TG_F32, flags, {axis, second}, 0};
}

static void add_stmt(struct copy *c, tg_stmt stmt)
{
    c->body[c->algorithm.n_body++] = stmt;
}

/* Of an expression of one code one of fifteen. */
#define SQUARE(x)   TG_MUL(x, x)
#define CODES_15(x) SQUARE(SQUARE(SQUARE(x)))

/* ---- tests ---- */

#define BAD(name, codes, fragment, ...)                                                                                \
    static void bad_##name(struct copy *c)                                                                             \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
    }
#define BAD_FORM BAD
#include "tests/dsl/bad.def"
#undef BAD_FORM
#undef BAD

static const struct {
    const char *name, *codes, *fragment;
    const tg_variant *of;
    void (*spoil)(struct copy *c);
} bad[] = {
#define BAD(name, codes, fragment, ...)      {#name, codes, fragment, &good, bad_##name},
#define BAD_FORM(name, codes, fragment, ...) {#name, codes, fragment, &forms, bad_##name},
#include "tests/dsl/bad.def"
#undef BAD_FORM
#undef BAD
};

static bool is_warning_only(const char *codes)
{
    static const char *const warnings[] = {"TG0110", "TG0113", "TG0239", "TG0313"};
    for (; *codes; codes += codes[6] ? 7 : 6) {
        bool warning = false;
        for (uint32_t i = 0; i < TG_COUNT(warnings); i++)
            warning = warning || strncmp(codes, warnings[i], 6) == 0;
        if (!warning)
            return false;
    }
    return true;
}

static void test_mistakes(void **state)
{
    (void)state;
    static struct copy c;
    int failures = 0;
    for (uint32_t i = 0; i < TG_COUNT(bad); i++) {
        struct log log = {{0}, {0}};
        const tg_sink sink = {remember, &log};
        copy_variant(&c, bad[i].of);
        bad[i].spoil(&c);
        const tg_status status = tg_variant_check(&c.variant, &sink);
        const bool codes_ok = strcmp(log.codes, bad[i].codes) == 0;
        const bool status_ok = (status == TG_OK) == is_warning_only(bad[i].codes);
        if (codes_ok && status_ok && strstr(log.text, bad[i].fragment))
            continue;
        failures++;
        print_message("%s: expected [%s] \"%s\", status %d, got [%s]\n%s", bad[i].name, bad[i].codes, bad[i].fragment,
                      (int)status, log.codes, log.text);
    }
    assert_int_equal(failures, 0);
}

/* Every code that the checker has is provoked by some row of bad.def, or is listed here. */
static void test_codes(void **state)
{
    (void)state;
    static const char *const elsewhere =
        "TG0101 TG0201 TG0205 TG0301 TG0401 TG0221 TG0226 TG0230 TG0231 TG0232 TG0233 TG0410";
    for (uint32_t code = 0; code < TG_N_CODES; code++) {
        const char *name = tg_code_name((enum tg_code)code);
        bool found = strstr(elsewhere, name) != NULL;
        for (uint32_t i = 0; i < TG_COUNT(bad); i++)
            found = found || strstr(bad[i].codes, name);
        if (!found)
            fail_msg("no test provokes %s (%s)", name, tg_code_meaning((enum tg_code)code));
    }
}

static void test_statements_have_places(void **state)
{
    (void)state;
    static struct copy c;
    struct log log = {{0}, {0}};
    const tg_sink sink = {remember, &log};
    char expected[64];
    copy_good(&c);
    c.body[AT_QK].b = K;
    c.schedule.rows[ROW_H].warps = 0;
    (void)tg_algorithm_check(&c.algorithm, &sink);
    (void)snprintf(expected, sizeof expected, "good.c:%d: CONTRACT", c.body[AT_QK].line);
    assert_non_null(strstr(log.text, expected));
    copy_good(&c);
    c.schedule.rows[ROW_H].warps = 0;
    (void)tg_schedule_check(&c.schedule, &sink);
    (void)snprintf(expected, sizeof expected, "good.c:%d: kernel H", c.schedule.rows[ROW_H].line);
    assert_non_null(strstr(log.text, expected));
}

static void test_null(void **state)
{
    (void)state;
    struct log log = {{0}, {0}};
    const tg_sink sink = {remember, &log};
    assert_int_equal(tg_algorithm_check(NULL, &sink), TG_E_DECLARATION);
    assert_int_equal(tg_schedule_check(NULL, &sink), TG_E_DECLARATION);
    assert_int_equal(tg_space_check(NULL, &sink), TG_E_DECLARATION);
    assert_int_equal(tg_variant_check(NULL, &sink), TG_E_DECLARATION);
    assert_string_equal(log.codes, "TG0101 TG0201 TG0301 TG0401");
    assert_int_equal(tg_algorithm_check(NULL, NULL), TG_E_DECLARATION);
}

static void test_versions(void **state)
{
    (void)state;
    static struct copy c;
    copy_good(&c);
    c.algorithm.struct_size += 8;
    assert_int_equal(tg_schedule_check(&c.schedule, NULL), TG_E_VERSION);
    copy_good(&c);
    c.schedule.version++;
    assert_int_equal(tg_schedule_check(&c.schedule, NULL), TG_E_VERSION);
    copy_good(&c);
    c.schedule.struct_size -= 8;
    assert_int_equal(tg_schedule_check(&c.schedule, NULL), TG_E_DECLARATION);
}

/* A backward that is spoiled in one way, and what is said of it. */
struct backward_copy {
    tg_tensor tensors[TG_MAX_TILES];
    tg_algorithm algorithm;
    tg_schedule schedule;
    const tg_schedule *schedules[2];
    tg_variant backward, forward;
};

static uint32_t tile_named(const struct backward_copy *c, const char *name)
{
    uint32_t t = 1;
    while (!c->tensors[t].name || strcmp(c->tensors[t].name, name) != 0)
        t++;
    return t;
}

static void copy_backward(struct backward_copy *c)
{
    c->algorithm = *backward_tfla.algorithm;
    memcpy(c->tensors, c->algorithm.tensors, c->algorithm.n_tensors * sizeof *c->tensors);
    c->algorithm.tensors = c->tensors;
    c->schedule = backward_tfla;
    c->schedule.algorithm = &c->algorithm;
    c->schedules[0] = &c->schedule;
    c->schedules[1] = NULL;
    c->forward = c->backward = good;
    c->backward.name = "good-backward";
    c->backward.algorithm = &c->algorithm;
    c->backward.schedules = c->schedules;
    c->backward.spaces = NULL;
    c->forward.backward = &c->backward;
}

#define SPOILED(codes_, fragment_, ...)                                                                                \
    copy_backward(&c);                                                                                                 \
    __VA_ARGS__;                                                                                                       \
    log = (struct log){{0}, {0}};                                                                                      \
    assert_int_equal(tg_variant_check(&c.forward, &sink), *(codes_) ? TG_E_DECLARATION : TG_OK);                       \
    assert_string_equal(log.codes, codes_);                                                                            \
    assert_non_null(strstr(log.text, fragment_))

static void test_backward(void **state)
{
    (void)state;
    static struct backward_copy c;
    static struct log log;
    const tg_sink sink = {remember, &log};
    SPOILED("", "", (void)0);
    SPOILED("TG0402", "backward: struct_size 3", c.backward.struct_size = 3);
    SPOILED("TG0402", "backward: struct_size 0", c.backward.struct_size = 0);
    SPOILED("TG0403", "backward has no name", c.backward.name = NULL);
    SPOILED("TG0405", "the backward has no algorithm", c.backward.algorithm = NULL);
    SPOILED("TG0406", "the backward has no schedule", c.backward.schedules = NULL);
    SPOILED("TG0223", "warps is 17", c.schedule.rows[0].warps = 17);
    SPOILED("TG0411", "output dw is neither a tensor of the forward nor", c.tensors[tile_named(&c, "dv")].name = "dw");
    SPOILED("TG0411", "input other is neither", c.tensors[tile_named(&c, "dh")].name = "other");
    SPOILED("TG0411", "the backward's f has other axes than the forward's f",
            c.tensors[tile_named(&c, "f")].flags |= TG_SHARED);
    SPOILED("TG0411", "the backward's f is drawn otherwise than the forward's",
            c.tensors[tile_named(&c, "f")].drawn = TG_DRAWN_SMALL);
}

static void test_endless_list(void **state)
{
    (void)state;
    static struct copy c;
    static const tg_schedule *many[80];
    struct log log = {{0}, {0}};
    const tg_sink sink = {remember, &log};
    copy_good(&c);
    for (uint32_t i = 0; i < TG_COUNT(many); i++)
        many[i] = &c.schedule;
    c.variant.schedules = many;
    assert_int_equal(tg_variant_check(&c.variant, &sink), TG_E_DECLARATION);
    assert_non_null(strstr(log.codes, "TG0410"));
}

static void test_tensor_count(void **state)
{
    (void)state;
    static struct copy c;
    static char names[TG_MAX_TILES][8];
    struct log log = {{0}, {0}};
    const tg_sink sink = {remember, &log};
    copy_good(&c);
    enum { MORE = TG_MAX_TENSORS - 8 };
    for (uint32_t tile = N_GOOD; tile < N_GOOD + MORE; tile++) {
        (void)snprintf(names[tile], sizeof names[tile], "x%u", tile);
        c.tensors[tile] = (tg_tensor){names[tile], TG_F32, TG_IN, {TG_T}, 0};
    }
    c.algorithm.n_tensors = N_GOOD + MORE;
    c.schedule.kept[0] = KW;
    assert_int_equal(tg_schedule_check(&c.schedule, &sink), TG_E_DECLARATION);
    assert_non_null(strstr(log.text, "TG0226"));
    assert_non_null(strstr(log.text, "70 tensors in memory, at most 64"));
}

static void test_crossing(void **state)
{
    (void)state;
    struct log log = {{0}, {0}};
    const tg_sink sink = {remember, &log};
    tg_schedule schedule = kda_one;
    schedule.chunk = 128;
    assert_int_equal(tg_schedule_check(&schedule, &sink), TG_E_DECLARATION);
    assert_non_null(strstr(log.text, "TG0221"));
    assert_non_null(strstr(log.text, "U is computed at one position and read at the other"));
}

/* ---- slices ---- */

/* cmocka compares 64 bits. */
#define ASSERT_SET(a, b) assert_true((a) == (b))

static tg_bits stmts(uint32_t first, uint32_t last)
{
    tg_bits bits = 0;
    for (uint32_t s = first; s <= last; s++)
        bits |= TG_BIT(s);
    return bits;
}

#define DIM(dim) (1u << (dim))

static void test_slices(void **state)
{
    (void)state;
    const tg_schedule *tfla = good.schedules[0];
    struct tg_slice slice;
    assert_true(tg_row_slice(tfla, ROW_GATES, &slice));
    ASSERT_SET(slice.stmts, stmts(AT_A, AT_W));
    ASSERT_SET(slice.loads, TG_BIT(F) | TG_BIT(I));
    ASSERT_SET(slice.stores, TG_BIT(B) | TG_BIT(LI) | TG_BIT(G) | TG_BIT(W));
    assert_int_equal(slice.dims, DIM(TG_CHUNK) | DIM(TG_LKV));
    assert_int_equal(slice.scanned, DIM(TG_LKV));
    assert_int_equal(slice.matrix, 0);

    assert_true(tg_row_slice(tfla, ROW_STATE, &slice));
    ASSERT_SET(slice.stmts, TG_BIT(AT_KW) | TG_BIT(AT_C));
    ASSERT_SET(slice.loads, TG_BIT(K) | TG_BIT(V) | TG_BIT(S0) | TG_BIT(G) | TG_BIT(W));
    ASSERT_SET(slice.stores, TG_BIT(C) | TG_BIT(S));
    assert_int_equal(slice.dims, DIM(TG_CHUNK) | DIM(TG_LKV) | DIM(TG_DQK) | DIM(TG_DHV));
    assert_int_equal(slice.summed, DIM(TG_LKV));

    assert_true(tg_row_slice(tfla, ROW_H, &slice));
    ASSERT_SET(slice.stmts, stmts(AT_INTER, AT_H));
    ASSERT_SET(slice.loads, TG_BIT(Q) | TG_BIT(K) | TG_BIT(V) | TG_BIT(B) | TG_BIT(LI) | TG_BIT(C));
    ASSERT_SET(slice.stores, TG_BIT(H));
    assert_true((slice.at_q & slice.at_kv & TG_BIT(B)) && !(slice.at_q & TG_BIT(LI)));
    assert_int_equal(slice.summed, DIM(TG_LKV) | DIM(TG_DQK));
    ASSERT_SET(slice.crossing, 0);
    assert_false(tg_row_slice(tfla, 3, &slice));
}

static void test_walk_slices(void **state)
{
    (void)state;
    struct tg_slice slice;
    assert_true(tg_row_slice(&good_walk, 0, &slice));
    ASSERT_SET(slice.stmts, stmts(AT_A, AT_H));
    ASSERT_SET(slice.stores, TG_BIT(H) | TG_BIT(S));
    ASSERT_SET(slice.loads, TG_BIT(Q) | TG_BIT(K) | TG_BIT(V) | TG_BIT(F) | TG_BIT(I) | TG_BIT(S0));
    assert_true(slice.at_q & slice.at_kv & TG_BIT(F)); /* b is computed at both positions */
    assert_int_equal(slice.scanned, DIM(TG_LQ) | DIM(TG_LKV));

    assert_true(tg_row_slice(&good_segments, 3, &slice));
    assert_true((slice.stmts & TG_BIT(AT_C)) && (slice.loads & TG_BIT(C)) && !(slice.loads & TG_BIT(S0)));
    ASSERT_SET(slice.stores, TG_BIT(H) | TG_BIT(S));
    assert_true(tg_row_slice(&good_segments, 2, &slice)); /* composes */
    ASSERT_SET(slice.stmts, 0);
    ASSERT_SET(slice.loads, TG_BIT(C) | TG_BIT(G) | TG_BIT(S0));
    ASSERT_SET(slice.stores, TG_BIT(C));
    assert_true(tg_row_slice(&good_segments, 1, &slice));
    ASSERT_SET(slice.stores, TG_BIT(C)); /* of a segment by itself S is not known */
    assert_false(slice.loads & TG_BIT(S0));

    assert_true(tg_row_slice(&good_starts, 1, &slice));
    assert_true((slice.stmts & TG_BIT(AT_C)) && (slice.loads & TG_BIT(C)));
    ASSERT_SET(slice.stores, TG_BIT(H));
    assert_true(tg_row_slice(&good_starts, 0, &slice));
    ASSERT_SET(slice.stores, TG_BIT(C) | TG_BIT(S)); /* it walks them all, and H lists no S */

    assert_true(tg_row_slice(&good_step, 0, &slice));
    ASSERT_SET(slice.stmts, stmts(AT_A, AT_H));
    ASSERT_SET(slice.stores, TG_BIT(H) | TG_BIT(S));

    assert_true(tg_row_slice(&kda_one, 0, &slice));
    ASSERT_SET(slice.stmts, stmts(0, kda_one.algorithm->n_body - 1));
    assert_true(slice.crossing != 0);
    assert_true(tg_row_slice(&kda_three, 2, &slice));
    ASSERT_SET(slice.crossing, 0);
}

/* Kept: an output where a row writes it, an input where none does. */
static void test_kept_slices(void **state)
{
    (void)state;
    struct tg_slice slice;
    assert_true(tg_row_slice(forms.schedules[0], FORM_NORM, &slice));
    ASSERT_SET(slice.stores, TG_BIT(X_N));
    assert_true(tg_row_slice(forms.schedules[1], FORM_H - 1, &slice));
    assert_true((slice.loads & TG_BIT(X_N)) && !(slice.stmts & TG_BIT(IS_N)));
    assert_true(tg_row_slice(forms.schedules[0], FORM_DB, &slice));
    ASSERT_SET(slice.stmts, TG_BIT(IS_E) | TG_BIT(IS_TE) | TG_BIT(IS_DB));
    assert_int_equal(slice.summed, DIM(TG_LKV) | DIM(TG_CHUNK) | DIM(TG_BATCH));
    assert_true(tg_row_slice(forms.schedules[0], FORM_SCAN, &slice));
    assert_int_equal(slice.scanned, DIM(TG_CHUNK));
}

/* A total is over the positions that the kernel visits, whatever they are called. */
static void test_total_at_query(void **state)
{
    (void)state;
    struct log log = {{0}, {0}};
    const tg_sink sink = {remember, &log};
    tg_schedule schedule = backward_tfla;
    schedule.rows[0] = schedule.rows[2]; /* dC without the gates' kernel */
    schedule.rows[0].row[TG_LQ] = (tg_axis_role)TG_W(64);
    schedule.n_rows = 1;
    (void)tg_schedule_check(&schedule, &sink);
    assert_string_equal(log.codes, "TG0209 TG0209 TG0209"); /* dq, dk, dv */
}

static void test_good(void **state)
{
    (void)state;
    struct log log = {{0}, {0}};
    const tg_sink sink = {remember, &log};
    assert_int_equal(tg_variant_check(&good, &sink), TG_OK);
    assert_int_equal(tg_variant_check(&forms, &sink), TG_OK);
    assert_int_equal(tg_space_check(good.spaces[0], &sink), TG_OK);
    assert_string_equal(log.text, "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_statements_have_places),
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_backward),
        cmocka_unit_test(test_endless_list),
        cmocka_unit_test(test_tensor_count),
        cmocka_unit_test(test_crossing),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_walk_slices),
        cmocka_unit_test(test_kept_slices),
        cmocka_unit_test(test_total_at_query),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_table_texts),
        cmocka_unit_test(test_own_table),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_states_alone),
        cmocka_unit_test(test_states_alone_once),
        cmocka_unit_test(test_states_alone_of_none),
        cmocka_unit_test(test_infix),
        cmocka_unit_test(test_diff_and_apply),
        cmocka_unit_test(test_apply_mistakes),
        cmocka_unit_test(test_key),
        cmocka_unit_test(test_key_of_forms),
        cmocka_unit_test(test_dim_names),
        cmocka_unit_test(test_garbage),
    };
    if (!usage_is(argc, argv, 0, 0, ""))
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
