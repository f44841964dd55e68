/* examples/algorithm/mine.c - an algorithm of your own, of no family that Tegula knows: HGRN2 (Qin et al., 2024), in which
 * the forget gate of a key dimension is also the key, so that the state is a moving average of the values:
 *
 *     f_t = sigmoid(x_t)      S_t = diag(f_t) S_{t-1} + (1 - f_t) v_t^T      h_t = scale S_t^T q_t
 *
 *     cc -std=c11 -shared -fPIC -Ibuild/include examples/algorithm/mine.c -lm -o build/algorithm.so
 *     build/bin/tegula check --load build/algorithm.so my-hgrn2 --shape B=2,NH=2,T=200,dqk=64,dhv=64
 *
 * From dsl/tegula.h alone. Statements say what is computed for a chunk of tokens; the rows say by which kernels. The
 * recurrence at the end, in fp64, is what `check` compares with. */
#include <tegula/dsl/tegula.h>

#include <math.h>
#include <stdlib.h>

enum {
    Q = 1, /* queries [T, dqk] */
    X,     /* forget gates before the sigmoid [T, dqk] */
    V,     /* values [T, dhv] */
    S0,    /* initial state [dqk, dhv] */
    H,     /* output [T, dhv] */
    S,     /* final state [dqk, dhv] */
    A,     /* log2 f, not below -150, which is 0 in fp32 [T, dqk] */
    K,     /* keys: 1 - f [T, dqk] */
    B,     /* sum of A over the chunk up to the token [T, dqk] */
    GT,    /* sum of A over the chunk [chunk, dqk] */
    KE,    /* keys as the end of the chunk sees them [T, dqk] */
    CK,    /* state that arrives at a chunk [chunk, dqk, dhv] */
    QS,    /* queries, scaled [T, dqk] */
    QB,    /* ... and as the beginning of the chunk sees them [T, dqk] */
    INTER, /* what the earlier chunks give [T, dhv] */
    P,     /* q k^T inside the chunk, decayed [Lhq, Lkv] */
    SUM    /* all of it [T, dhv] */
};

static const tg_tensor tensors[] = {
    [Q] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [X] = {"x", TG_F32, TG_IN, {TG_T, TG_DQK}},
    [V] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [S0] = {"S0", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [H] = {"h", TG_IO, TG_OUT, {TG_T, TG_DHV}},
    [S] = {"S", TG_F32, TG_OUT | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [A] = {"log2_f", TG_F32, 0, {TG_T, TG_DQK}},
    [K] = {"k", TG_IO, 0, {TG_T, TG_DQK}},
    [B] = {"b", TG_F32, 0, {TG_T, TG_DQK}},
    [GT] = {"gt", TG_F32, 0, {TG_CHUNK, TG_DQK}},
    [KE] = {"ke", TG_F32, 0, {TG_T, TG_DQK}},
    [CK] = {"states", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [QS] = {"qs", TG_F32, 0, {TG_T, TG_DQK}},
    [QB] = {"qb", TG_F32, 0, {TG_T, TG_DQK}},
    [INTER] = {"inter", TG_F32, 0, {TG_T, TG_DHV}},
    [P] = {"p", TG_F32, 0, {TG_LQ, TG_LKV}},
    [SUM] = {"sum", TG_F32, 0, {TG_T, TG_DHV}},
};

static const tg_stmt body[] = {
    /* gates: logs are base 2 */
    TG_MAP_TO(TG_AT_KV(A), TG_MAX(TG_LOGSIG2(TG_KV(X)), TG_NUM(-150.0f))),
    TG_MAP_TO(TG_AT_KV(K), TG_SIGMOID(TG_NEG(TG_KV(X)))),
    TG_SCAN_TO(TG_AT_KV(B), TG_AT_KV(A)),
    TG_TOTAL_TO(GT, TG_AT_KV(A)),
    /* the state from chunk to chunk: diag(2^gt) S + sum over j of ke_j v_j^T */
    TG_MAP_TO(TG_AT_KV(KE), TG_MUL(TG_KV(K), TG_EXP2(TG_SUB(TG_TILE(GT), TG_KV(B))))),
    TG_CARRY_TO(CK, S, S0, GT, TG_AT_KV(KE), TG_AT_KV(V)),
    /* the output: what the state gives, and the chunk's own tokens, each decayed to where it is read */
    TG_MAP_TO(TG_AT_Q(QS), TG_MUL(TG_Q(Q), TG_SCALE)),
    TG_MAP_TO(TG_AT_Q(QB), TG_MUL(TG_Q(Q), TG_MUL(TG_EXP2(TG_Q(B)), TG_SCALE))),
    TG_CONTRACT_TO(TG_AT_Q(INTER), TG_AT_Q(QB), CK),
    TG_CONTRACT_DECAY_TO(P, TG_AT_Q(QS), TG_AT_KV(K), TG_AT_Q(B), TG_AT_KV(B)),
    TG_CONTRACT_ONTO(TG_AT_Q(SUM), TG_AT_Q(INTER), P, TG_AT_KV(V)),
    TG_MAP_TO(TG_AT_Q(H), TG_Q(SUM)),
};

static const tg_algorithm algorithm = {
    TG_HEADER(tg_algorithm),
    .name = "my-hgrn2",
    .title = "HGRN2: forget gates that are keys",
    .file = __FILE__,
    .tensors = tensors,
    .n_tensors = TG_COUNT(tensors),
    .body = body,
    .n_body = TG_COUNT(body),
};

/* Two levels: gates, then states of the chunks in their order, then the chunks by themselves. */
static const tg_schedule two_level = {
    TG_HEADER(tg_schedule),
    .name = "two-level",
    .file = __FILE__,
    .algorithm = &algorithm,
    .chunk = 64,
    .n_rows = 3,
    .rows = {
        {.name = "gates", .outputs = {K, B, GT}, .warps = 2, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(1), [TG_DQK] = TG_P(64)}},
        {.name = "state", .outputs = {CK}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(32), [TG_DQK] = TG_P(64), [TG_DHV] = TG_P(64)}},
        {.name = "H", .outputs = {H}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_LKV] = TG_L(16), [TG_DQK] = TG_L(32), [TG_DHV] = TG_P(64)}},
    },
};

/* Decode: a token is a chunk; a thread has a column of the state and walks down it. */
static const tg_schedule step = {
    TG_HEADER(tg_schedule),
    .name = "step",
    .file = __FILE__,
    .algorithm = &algorithm,
    .chunk = 1,
    .max_tokens = 1,
    .n_rows = 1,
    .rows = {{.name = "step", .outputs = {H, S}, .warps = 4, .line = __LINE__,
              .row = {[TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_L(1), [TG_DHV] = TG_P(128)}}},
};

static double forget(double x)
{
    return 1 / (1 + exp(-x));
}

/* One sequence of one head, whose rows begin at `row` of tensors [T, ...]; the state [dqk, dhv] changes in place. */
static void sequence(const tg_oracle_call *c, int64_t row, int64_t tokens, double *state)
{
    for (int64_t t = row; t < row + tokens; t++)
        for (int64_t j = 0; j < c->dhv; j++) {
            double h = 0;
            for (int64_t i = 0; i < c->dqk; i++) {
                const double x = c->in[X][t * c->dqk + i], v = c->in[V][t * c->dhv + j];
                double *s = &state[i * c->dhv + j];
                *s = forget(x) * *s + forget(-x) * v;
                h += c->in[Q][t * c->dqk + i] * *s;
            }
            if (c->out[H])
                c->out[H][t * c->dhv + j] = c->scalars[0] * h;
        }
}

static void oracle(const tg_oracle_call *c)
{
    const int64_t size = c->dqk * c->dhv;
    double *state = malloc((size_t)size * sizeof *state);
    for (int64_t n = 0; state && n < c->batch * c->heads; n++) {
        const int64_t b = n / c->heads, head = n % c->heads;
        for (int64_t i = 0; i < size; i++)
            state[i] = c->in[S0] ? c->in[S0][n * size + i] : 0;
        if (c->cuts) /* packed: [heads, T] with the sequences behind one another */
            sequence(c, head * c->tokens + c->cuts[b], c->cuts[b + 1] - c->cuts[b], state);
        else
            sequence(c, n * c->tokens, c->tokens, state);
        for (int64_t i = 0; c->out[S] && i < size; i++)
            c->out[S][n * size + i] = state[i];
    }
    free(state);
}

/* What `tune` may vary. */
static const tg_vary vary[] = {
    {.field = TG_FIELD_CHUNK, .values = {64, 128, 256}, .line = __LINE__},
    {.field = TG_FIELD_STAGES, .rows = {"H"}, .values = {2, 3}, .line = __LINE__},
};

static const tg_space space = {
    TG_HEADER(tg_space),
    .name = "two-level",
    .file = __FILE__,
    .schedule = &two_level,
    .vary = vary,
    .n_vary = TG_COUNT(vary),
};

static const tg_schedule *const schedules[] = {&step, &two_level, NULL};
static const tg_space *const spaces[] = {&space, NULL};

static const tg_variant mine = {
    TG_HEADER(tg_variant),
    .name = "my-hgrn2",
    .algorithm = &algorithm,
    .schedules = schedules,
    .spaces = spaces,
    .oracle = oracle,
};

/* What `--load` looks for. */
TG_API const tg_variant *const tg_variants[] = {&mine, NULL};
