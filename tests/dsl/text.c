/* tests/dsl/text.c - printing, and the text form of schedule fields. UPDATE=1 rewrites
 * tests/dsl/<name>.txt. */
#include "tests/dsl/test.h"

#ifndef TEST_DSL_DIR
#define TEST_DSL_DIR "tests/dsl"
#endif

void test_golden(void **state)
{
    (void)state;
    const struct {
        const char *name;
        const tg_schedule *const *schedules;
    } all[] = {
        {"good", good.schedules},
        {"forms", forms.schedules},
        {"backward", (const tg_schedule *const[]){&backward_tfla, NULL}},
        {"gla", (const tg_schedule *const[]){&gla_tfla, NULL}},
        {"kda", (const tg_schedule *const[]){&kda_three, &kda_one, NULL}},
    };
    for (uint32_t i = 0; i < TG_COUNT(all); i++) {
        static struct log log, expected;
        memset(&log, 0, sizeof log);
        memset(&expected, 0, sizeof expected);
        const tg_sink sink = {remember, &log};
        const tg_writer writer = {collect, &log};
        for (uint32_t s = 0; all[i].schedules[s]; s++) {
            const tg_status status = tg_schedule_check(all[i].schedules[s], &sink);
            if (status != TG_OK || log.codes[0])
                fail_msg("%s: %s", all[i].name, log.text);
        }
        tg_algorithm_print(all[i].schedules[0]->algorithm, &writer);
        for (uint32_t s = 0; all[i].schedules[s]; s++) {
            tg_printf(&writer, "\n");
            tg_schedule_print(all[i].schedules[s], &writer);
        }
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s.txt", TEST_DSL_DIR, all[i].name);
        const bool update = getenv("UPDATE") != NULL;
        FILE *file = fopen(path, update ? "w" : "r");
        assert_non_null(file);
        if (update)
            (void)fputs(log.text, file);
        else
            (void)fread(expected.text, 1, sizeof expected.text - 1, file);
        (void)fclose(file);
        if (!update)
            assert_string_equal(log.text, expected.text);
    }
}

static void print_map(char *text, size_t size, const tg_x *codes, uint32_t n)
{
    static struct copy c;
    static struct log log;
    memset(&log, 0, sizeof log);
    const tg_writer writer = {collect, &log};
    copy_good(&c);
    memset(c.body[0].expr, 0, sizeof c.body[0].expr);
    memcpy(c.body[0].expr, codes, n * sizeof *codes);
    c.algorithm.n_body = 1;
    tg_algorithm_print(&c.algorithm, &writer);
    const char *equation = strstr(log.text, "a[j] = ");
    assert_non_null(equation);
    (void)snprintf(text, size, "%.*s", (int)strcspn(equation + 7, "\n"), equation + 7);
}

#define ASSERT_PRINTS(expected, expression)                                                        \
    do {                                                                                           \
        const tg_x codes[] = {TG_CODES expression};                                                \
        char text[256];                                                                            \
        print_map(text, sizeof text, codes, TG_COUNT(codes));                                      \
        assert_string_equal(text, expected);                                                       \
    } while (0)

void test_infix(void **state)
{
    (void)state;
#define X TG_KV(F)
#define Y TG_KV(I)
    ASSERT_PRINTS("f[j] + i[j] + f[j]", TG_ADD(TG_ADD(X, Y), X));
    ASSERT_PRINTS("f[j] + (i[j] + f[j])", TG_ADD(X, TG_ADD(Y, X)));
    ASSERT_PRINTS("f[j] - (i[j] - f[j])", TG_SUB(X, TG_SUB(Y, X)));
    ASSERT_PRINTS("(f[j] + i[j]) * f[j]", TG_MUL(TG_ADD(X, Y), X));
    ASSERT_PRINTS("f[j] + i[j] * f[j]", TG_ADD(X, TG_MUL(Y, X)));
    ASSERT_PRINTS("f[j] / (i[j] * f[j])", TG_DIV(X, TG_MUL(Y, X)));
    ASSERT_PRINTS("2^(-f[j])", TG_EXP2(TG_NEG(X)));
    ASSERT_PRINTS("-2^f[j]", TG_NEG(TG_EXP2(X)));
    ASSERT_PRINTS("2^(2^f[j])", TG_EXP2(TG_EXP2(X)));
    ASSERT_PRINTS("-(f[j] * i[j])", TG_NEG(TG_MUL(X, Y)));
    ASSERT_PRINTS("f[j] - (-i[j])", TG_SUB(X, TG_NEG(Y)));
    ASSERT_PRINTS("max(f[j], min(i[j], -0.5)) * scale",
                  TG_MUL(TG_MAX(X, TG_MIN(Y, TG_NUM(-0.5f))), TG_SCALE));
    ASSERT_PRINTS("f[j] * (-0.5)", TG_MUL(X, TG_NUM(-0.5f)));
    ASSERT_PRINTS("abs(log2(sigmoid(f[j])))", TG_ABS(TG_LOG2(TG_SIGMOID(X))));
    ASSERT_PRINTS("softplus(-f[j]) * step(i[j] - f[j])",
                  TG_MUL(TG_SOFTPLUS(TG_NEG(X)), TG_STEP(TG_SUB(Y, X))));
    ASSERT_PRINTS("f[j] * scalar 3", TG_MUL(X, TG_SCALAR(3)));
    ASSERT_PRINTS("(malformed expression)", TG_UNARY(TG_X_ADD, X));
#undef X
#undef Y
}

void test_diff_and_apply(void **state)
{
    (void)state;
    tg_schedule changed = *good.schedules[0], again = *good.schedules[0];
    struct log log = {{0}, {0}};
    const tg_writer writer = {collect, &log};
    const tg_sink sink = {remember, &log};
    tg_schedule_diff(good.schedules[0], &changed, &writer);
    assert_string_equal(log.text, "");
    changed.chunk = 256;
    changed.rows[ROW_H].row[TG_LQ].block = 64;
    changed.rows[ROW_H].row[TG_DHV].block = 64;
    changed.rows[ROW_H].warps = 4;
    changed.rows[ROW_STATE].stages = 4;
    changed.rows[ROW_H].blocks_per_sm = 2;
    changed.rows[ROW_H].makers = 4;
    tg_schedule_diff(good.schedules[0], &changed, &writer);
    assert_string_equal(log.text, "chunk=256 state.stages=4 H.Lhq=64 H.dhv=64 H.warps=4 "
                                  "H.blocks_per_sm=2 H.makers=4");
    assert_int_equal(tg_schedule_apply(log.text, &again, &sink), TG_OK);
    assert_memory_equal(&again, &changed, sizeof again);
    assert_int_equal(tg_schedule_apply("", &again, &sink), TG_OK);
    log.text[0] = '\0';
    changed = again;
    changed.rows[ROW_H].row[TG_DQK] = (tg_axis_role)TG_CLUSTER_CAST(256);
    changed.rows[ROW_H].row[TG_DHV] = (tg_axis_role)TG_CAST(4, 128);
    changed.rows[ROW_H].row[TG_MEMBER].role = TG_ROLE_L;
    changed.rows[ROW_STATE].row[TG_DQK] = (tg_axis_role)TG_CLUSTER(64);
    changed.rows[ROW_STATE].mma = TG_MMA_TF32X3;
    changed.rows[ROW_STATE].row[TG_SEG] = (tg_axis_role)TG_R(16);
    tg_schedule_diff(&again, &changed, &writer);
    assert_string_equal(log.text,
                        "state.seg=R/16 state.dqk=C/64 state.mma=tf32x3 H.dqk=CM2/256 H.dhv=M4/128 H.member=L/0");
    assert_int_equal(tg_schedule_apply(log.text, &again, &sink), TG_OK);
    assert_memory_equal(&again, &changed, sizeof again);
    log.text[0] = '\0';
    changed.rows[ROW_STATE].row[TG_SEG].block = 8;
    tg_schedule_diff(&again, &changed, &writer);
    assert_string_equal(log.text, "seg=8"); /* one length for all that have segments */
    assert_int_equal(tg_schedule_apply(log.text, &again, &sink), TG_OK);
    assert_memory_equal(&again, &changed, sizeof again);
    assert_string_equal(log.codes, "");
}

void test_apply_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *code, *fragment;
    } cases[] = {
        {"chunk", "TG0230", "'chunk' has no '='"},
        {"X.warps=4", "TG0231", "no kernel 'X', expected one of: gates, state, H"},
        {"H.warp=4", "TG0232",
         "no field 'warp', expected one of: seg, chunk, Lhq, Lkv, dqk, dhv, batch, member, warps,"},
        {"H.member=2", "TG0233", "member is '2', expected 0 or 1"},
        {"chunks=4", "TG0232", "expected chunk, seg, pieces or KERNEL.field"},
        {"H.warps=", "TG0233", "warps is '', expected a number"},
        {"H.warps=-4", "TG0233", "warps is '-4', expected a number"},
        {"H.warps=99", "TG0233", "warps is '99', expected 1 to 16"},
        {"H.Lhq=9999999999999999999", "TG0233", "expected a block of at most 512, or a role"},
        {"chunk=0", "TG0233", "chunk is '0', expected 1 to 65535"},
        {"H.heads=1", "TG0232", "no field 'heads'"},
        {"seg=8", "TG0233", "seg is '8', expected 0: no kernel of the schedule has segments"},
        {"H.dqk=Q/64", "TG0233", "dqk is 'Q/64', expected P, L, W, R, C, M2, M4 or CM2"},
        {"H.dqk=P/", "TG0233", "dqk is 'P/', expected a block of at most 512, or a role"},
        {"H.dqk=M3/64", "TG0233", "expected P, L, W, R, C, M2, M4 or CM2"},
        {"H.dqk=P/600", "TG0233", "dqk is 'P/600', expected at most 512"},
        {"H.mma=fp8", "TG0233", "mma is 'fp8', expected none, sync, tf32x3 or wgmma"},
        {"=", "TG0232", "no field ''"},
        {"X.warps=4 H.warps=99", "TG0231 TG0233", "warps is '99'"},
    };
    for (uint32_t i = 0; i < TG_COUNT(cases); i++) {
        struct log log = {{0}, {0}};
        const tg_sink sink = {remember, &log};
        tg_schedule schedule = *good.schedules[0];
        assert_int_equal(tg_schedule_apply(cases[i].text, &schedule, &sink), TG_E_ARGUMENT);
        assert_string_equal(log.codes, cases[i].code);
        if (!strstr(log.text, cases[i].fragment))
            fail_msg("%s: %s", cases[i].text, log.text);
        assert_memory_equal(&schedule, good.schedules[0], sizeof schedule);
    }
    assert_int_equal(tg_schedule_apply(NULL, NULL, NULL), TG_E_ARGUMENT);
}

void test_key(void **state)
{
    (void)state;
    static struct copy c;
    static struct log one, two;
    memset(&one, 0, sizeof one);
    memset(&two, 0, sizeof two);
    copy_good(&c);
    const tg_writer first = {collect, &one}, second = {collect, &two};
    tg_schedule_key(good.schedules[0], &first);
    c.algorithm.name = "renamed";
    c.tensors[QK].name = "renamed";
    c.schedule.rows[ROW_H].name = "renamed";
    c.body[AT_QK].line = 1;
    tg_schedule_key(&c.schedule, &second);
    assert_string_equal(one.text, two.text);
    c.schedule.rows[ROW_H].warps = 4;
    memset(&two, 0, sizeof two);
    tg_schedule_key(&c.schedule, &second);
    assert_string_not_equal(one.text, two.text);
}

/* Everything that decides the code, or what a caller sees of it, is in the key. */
#define CHANGES(...)                                                                               \
    do {                                                                                           \
        static struct copy copied, *const c = &copied;                                             \
        static struct log changed;                                                                 \
        const tg_writer third = {collect, &changed};                                               \
        memset(&changed, 0, sizeof changed);                                                       \
        copy_variant(c, &forms);                                                                   \
        __VA_ARGS__;                                                                               \
        tg_schedule_key(&c->schedule, &third);                                                     \
        if (strcmp(changed.text, key.text) == 0)                                                   \
            fail_msg("the key lacks: %s", #__VA_ARGS__);                                           \
    } while (0)

void test_key_of_forms(void **state)
{
    (void)state;
    static struct log key, one, two;
    memset(&key, 0, sizeof key);
    memset(&one, 0, sizeof one);
    memset(&two, 0, sizeof two);
    const tg_writer writer = {collect, &key}, first = {collect, &one}, second = {collect, &two};
    tg_schedule_key(forms.schedules[0], &writer);
    CHANGES(c->scalars[1].name = "taw");
    CHANGES(c->scalars[1].value = 8);
    CHANGES(c->scalars[0].value = 1);
    CHANGES(c->algorithm.n_scalars = 2);
    CHANGES(c->body[IS_A].expr[5].operand = 2);
    CHANGES(c->tensors[X_K].flags = TG_IN);
    CHANGES(c->tensors[X_BIAS].flags = TG_IN);
    CHANGES(c->tensors[X_UNUSED] = c->tensors[X_E]);
    CHANGES(c->body[IS_BX].flags = 0);
    CHANGES(c->body[IS_GX].flags = TG_EXCLUSIVE);
    CHANGES(c->body[IS_N].flags = 0);
    CHANGES(c->schedule.rows[FORM_DK].row[TG_MEMBER].role = 0);
    CHANGES(c->schedule.rows[FORM_DB].row[TG_BATCH].role = 0);
    CHANGES(c->schedule.rows[FORM_DK].row[TG_DQK].cluster = TG_ADDS);
    CHANGES(c->schedule.rows[FORM_DK].row[TG_DQK].cluster = 2);
    CHANGES(c->schedule.max_tokens = 16);
    CHANGES(c->schedule.kept[1] = 0);
    CHANGES(c->schedule.kept[2] = X_B);
    CHANGES(c->schedule.kept[0] = X_N; c->schedule.kept[1] = X_C);
    CHANGES(c->tensors[X_C].name = "states"); /* kept: the caller finds it by that name */

    static struct copy plain;
    copy_good(&plain);
    tg_schedule_key(&plain.schedule, &first);
    plain.algorithm.scalars = plain.scalars; /* the scale alone, written down */
    plain.scalars[0] = (tg_scalar){"scale", 0};
    plain.algorithm.n_scalars = 1;
    tg_schedule_key(&plain.schedule, &second);
    assert_string_equal(one.text, two.text);
}

void test_dim_names(void **state)
{
    (void)state;
    assert_string_equal(tg_dim_name(TG_BATCH), "batch");
    assert_string_equal(tg_dim_name(TG_MEMBER), "member");
    assert_string_equal(tg_dim_name(TG_LKV), "Lkv");
    for (uint32_t a = 0; a < TG_N_DIMS; a++)
        for (uint32_t b = 0; b < a; b++)
            assert_string_not_equal(tg_dim_name(a), tg_dim_name(b));
    assert_string_equal(tg_dim_name(TG_N_DIMS), "?");
}
