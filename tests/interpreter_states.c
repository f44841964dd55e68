/* tests/interpreter_states.c - see interpreter_states.h. */
#include "tests/interpreter_states.h"

#include <math.h>

enum { K = 1, V, S0, S, A, B, G, KW, CK, U, VD, ALL, N_TILES };

static const char *const no_aliases[] = {NULL};

#define IN_AND_OUT                                                                                                     \
    [K] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}}, [V] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},                              \
    [S0] = {"S0", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK, TG_DHV}}, [S] = {"S", TG_F32, TG_OUT, {TG_DQK, TG_DHV}},       \
    [CK] = {"states", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}}

#define ALGORITHM(name_, tensors_, body_)                                                                              \
    {                                                                                                                  \
        TG_HEADER(tg_algorithm), .name = (name_), .file = __FILE__, .tensors = (tensors_),                             \
                                 .n_tensors = TG_COUNT(tensors_), .body = (body_), .n_body = TG_COUNT(body_)           \
    }

/* The state of one head, [dqk][dhv], at its initial value. */
static double *begin(const tg_oracle_call *c, int64_t at)
{
    double *state = c->out[S] + at * c->dqk * c->dhv;
    for (int64_t e = 0; e < c->dqk * c->dhv; e++)
        state[e] = c->in[S0] ? c->in[S0][at * c->dqk * c->dhv + e] : 0;
    return state;
}

/* ---- a decay by channel ---- */

static const tg_tensor channel_tensors[] = {
    IN_AND_OUT,
    [A] = {"a", TG_F32, TG_IN, {TG_T, TG_DQK}, TG_DRAWN_LOG_DECAY},
    [B] = {"b", TG_F32, 0, {TG_T, TG_DQK}},
    [G] = {"g", TG_F32, 0, {TG_CHUNK, TG_DQK}},
    [KW] = {"kw", TG_F32, 0, {TG_T, TG_DQK}},
};
static const tg_stmt channel_body[] = {
    TG_SCAN_TO(TG_AT_KV(B), TG_AT_KV(A)),
    TG_TOTAL_TO(G, TG_AT_KV(A)),
    TG_MAP_TO(TG_AT_KV(KW), TG_MUL(TG_EXP2(TG_SUB(TG_TILE(G), TG_KV(B))), TG_KV(K))),
    TG_CARRY_TO(CK, S, S0, G, TG_AT_KV(KW), TG_AT_KV(V)),
};
static const tg_algorithm channel = ALGORITHM("channel", channel_tensors, channel_body);

static void channel_oracle(const tg_oracle_call *c)
{
    for (int64_t at = 0; at < c->batch * c->heads; at++) {
        double *state = begin(c, at);
        for (int64_t t = at * c->tokens; t < (at + 1) * c->tokens; t++)
            for (int64_t x = 0; x < c->dqk; x++)
                for (int64_t y = 0; y < c->dhv; y++)
                    state[x * c->dhv + y] = exp2(c->in[A][t * c->dqk + x]) * state[x * c->dhv + y] +
                                            c->in[K][t * c->dqk + x] * c->in[V][t * c->dhv + y];
    }
}

const tg_variant channel_variant = {TG_HEADER(tg_variant), .name = "channel", .aliases = no_aliases,
                                    .algorithm = &channel, .oracle = channel_oracle};

/* ---- a state read before it is carried ---- */

static const tg_tensor delta_tensors[] = {
    IN_AND_OUT,
    [U] = {"u", TG_F32, 0, {TG_T, TG_DHV}},
    [VD] = {"vd", TG_F32, 0, {TG_T, TG_DHV}},
};
static const tg_stmt delta_body[] = {
    TG_CONTRACT_TO(TG_AT_KV(U), TG_AT_KV(K), CK),
    TG_MAP_TO(TG_AT_KV(VD), TG_SUB(TG_KV(V), TG_KV(U))),
    TG_CARRY_TO(CK, S, S0, 0, TG_AT_KV(K), TG_AT_KV(VD)),
};
static const tg_algorithm delta = ALGORITHM("delta", delta_tensors, delta_body);

static void delta_oracle(const tg_oracle_call *c)
{
    for (int64_t at = 0; at < c->batch * c->heads; at++) {
        double *state = begin(c, at);
        for (int64_t t = at * c->tokens; t < (at + 1) * c->tokens; t++)
            for (int64_t y = 0; y < c->dhv; y++) {
                const double *k = c->in[K] + t * c->dqk;
                double v = c->in[V][t * c->dhv + y];
                for (int64_t x = 0; x < c->dqk; x++)
                    v -= k[x] * state[x * c->dhv + y];
                for (int64_t x = 0; x < c->dqk; x++)
                    state[x * c->dhv + y] += k[x] * v;
            }
    }
}

const tg_variant delta_variant = {TG_HEADER(tg_variant), .name = "delta", .aliases = no_aliases, .algorithm = &delta,
                                  .oracle = delta_oracle};

/* ---- what was before a token ---- */

static const tg_tensor prefix_tensors[] = {
    [V] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [B] = {"sum", TG_F32, 0, {TG_T, TG_DHV}},
    [G] = {"most", TG_F32, 0, {TG_T, TG_DHV}},
    [U] = {"h", TG_F32, TG_OUT, {TG_T, TG_DHV}},
};
static const tg_stmt prefix_body[] = {
    {.op = TG_STMT_SCAN, .flags = TG_EXCLUSIVE, .out = TG_AT_Q(B), .a = TG_AT_Q(V), TG_HERE},
    {.op = TG_STMT_SCAN, .flags = TG_EXCLUSIVE | TG_MAXIMUM, .out = TG_AT_Q(G), .a = TG_AT_Q(V), TG_HERE},
    TG_MAP_TO(TG_AT_Q(U), TG_ADD(TG_MAX(TG_Q(G), TG_NUM(-4)), TG_MUL(TG_Q(B), TG_NUM(2)))),
};
static const tg_algorithm prefix = ALGORITHM("prefix", prefix_tensors, prefix_body);

static void prefix_oracle(const tg_oracle_call *c)
{
    for (int64_t row = 0; row < c->batch * c->heads * c->tokens; row++)
        for (int64_t y = 0; y < c->dhv; y++) {
            double sum = 0, most = -4;
            for (int64_t before = row - row % c->tokens; before < row; before++) {
                sum += c->in[V][before * c->dhv + y];
                most = fmax(most, c->in[V][before * c->dhv + y]);
            }
            c->out[U][row * c->dhv + y] = most + 2 * sum;
        }
}

const tg_variant prefix_variant = {TG_HEADER(tg_variant), .name = "prefix", .aliases = no_aliases, .algorithm = &prefix,
                                   .oracle = prefix_oracle};

/* ---- no order to evaluate it in ---- */

static const tg_tensor circular_tensors[] = {
    IN_AND_OUT,
    [ALL] = {"all", TG_F32, 0, {TG_DQK, TG_DHV}},
    [KW] = {"kw", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [U] = {"u", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [A] = {"h", TG_F32, TG_OUT, {TG_T, TG_DQK}},
};
static const tg_stmt circular_body[] = {
    TG_TOTAL_TO(ALL, CK),
    TG_CONTRACT_TO(KW, TG_AT_KV(K), TG_AT_KV(V)),
    TG_MAP_TO(U, TG_ADD(TG_TILE(KW), TG_TILE(ALL))),
    TG_CARRY_TO(CK, S, S0, 0, U, 0),
    TG_CONTRACT_TO(TG_AT_KV(A), TG_AT_KV(V), CK),
};
const tg_algorithm circular = ALGORITHM("circular", circular_tensors, circular_body);
