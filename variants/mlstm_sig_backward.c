/* variants/mlstm_sig_backward.c - gradients of mlstm-sig (TFLA App. B; reference 2.3, 2.5).
 *
 * The same core as the forward with other bindings: dQ, dK and dV are Table 1's rows of one computation, dC is
 * the state kernel walked backwards. Gate gradients in the "rect" form, with E = (Qs K^T) o (dH V^T) o D:
 *     da_t  = sum over i >= t > j in the chunk of E_ij + sum over s >= t of rx_s + sum over s < t of kx_s + 2^g <C, dC>
 *     dli_t = sum over i of E_it + kx_t
 * where rx and kx are the tokens' parts in <C, dC> before and after the chunk. Rows and columns of E are summed
 * in fp32 from unrounded factors, so that what must cancel in da does; q.dq - k.dk, whose factors were rounded
 * to bf16 differently, leaves more than ten times the error (bench/NOTES.md). */
#include "variants/variants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    Q = 1, K, V, F, I, S0, DH, DS,          /* inputs; DH and DS: gradients of h and of the final state */
    DQ, DK, DV, DF, DI, DS0,                /* outputs */
    A, LI, B, G, W, KW, C, QB, DC, X,       /* gates, states and their gradients */
    DP, DPG, DQI, DQG, DQS, QS, RE, RX,     /* dQ */
    KP, KPG, DKI, DKG, KX, DKS, KQ, CE,     /* dK */
    VP, VPG, DVI, DVG,                      /* dV */
    E, PE, TE, TX, DA,                      /* gate gradients */
    N_TILES
};

static const tg_tensor tensors[N_TILES] = {
    [Q] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [K] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [V] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [F] = {"f", TG_F32, TG_IN, {TG_T}},
    [I] = {"i", TG_F32, TG_IN, {TG_T}},
    [S0] = {"S0", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [DH] = {"dh", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [DS] = {"dS", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [DQ] = {"dq", TG_IO, TG_OUT, {TG_T, TG_DQK}},
    [DK] = {"dk", TG_IO, TG_OUT, {TG_T, TG_DQK}},
    [DV] = {"dv", TG_IO, TG_OUT, {TG_T, TG_DHV}},
    [DF] = {"df", TG_F32, TG_OUT, {TG_T}},
    [DI] = {"di", TG_F32, TG_OUT, {TG_T}},
    [DS0] = {"dS0", TG_F32, TG_OUT | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [A] = {"a", TG_F32, 0, {TG_T}},
    [LI] = {"li", TG_F32, 0, {TG_T}},
    [B] = {"b", TG_F32X2, 0, {TG_T}},
    [G] = {"g", TG_F32X2, 0, {TG_CHUNK}},
    [W] = {"w", TG_F32, 0, {TG_T}},
    [KW] = {"kw", TG_F32, 0, {TG_T, TG_DQK}},
    [C] = {"C", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},  /* state before the chunk */
    [QB] = {"qb", TG_F32, 0, {TG_T, TG_DQK}},
    [DC] = {"dC", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}}, /* gradient of the state after the chunk */
    [X] = {"x", TG_F32, 0, {TG_CHUNK}},                   /* <C, dC> */
    [DP] = {"dp", TG_F32, 0, {TG_LQ, TG_LKV}},
    [DPG] = {"dpg", TG_F32, 0, {TG_LQ, TG_LKV}},
    [DQI] = {"dqi", TG_F32, 0, {TG_T, TG_DQK}},
    [DQG] = {"dqg", TG_F32, 0, {TG_T, TG_DQK}},
    [DQS] = {"dqs", TG_F32, 0, {TG_T, TG_DQK}},
    [QS] = {"qs", TG_F32, 0, {TG_LQ, TG_LKV}},
    [RE] = {"re", TG_F32, 0, {TG_T}}, /* sum of row i of E */
    [RX] = {"rx", TG_F32, 0, {TG_T}}, /* q.(2^b C dh): the token's part of <C, dC> before the chunk */
    [KP] = {"kp", TG_F32, 0, {TG_LKV, TG_LQ}},
    [KPG] = {"kpg", TG_F32, 0, {TG_LKV, TG_LQ}},
    [DKI] = {"dki", TG_F32, 0, {TG_T, TG_DQK}},
    [DKG] = {"dkg", TG_F32, 0, {TG_T, TG_DQK}},
    [KX] = {"kx", TG_F32, 0, {TG_T}}, /* k.(w dC v): the token's part of <C, dC> after the chunk */
    [DKS] = {"dks", TG_F32, 0, {TG_T, TG_DQK}},
    [KQ] = {"kq", TG_F32, 0, {TG_LKV, TG_LQ}},
    [CE] = {"ce", TG_F32, 0, {TG_T}}, /* sum of column j of E */
    [VP] = {"vp", TG_F32, 0, {TG_LKV, TG_LQ}},
    [VPG] = {"vpg", TG_F32, 0, {TG_LKV, TG_LQ}},
    [DVI] = {"dvi", TG_F32, 0, {TG_T, TG_DHV}},
    [DVG] = {"dvg", TG_F32, 0, {TG_T, TG_DHV}},
    [E] = {"e", TG_F32, 0, {TG_T}},
    [PE] = {"pe", TG_F32X2, 0, {TG_T}},
    [TE] = {"te", TG_F32X2, 0, {TG_CHUNK}},
    [TX] = {"tx", TG_F32X2, 0, {TG_CHUNK}},
    [DA] = {"da", TG_F32, 0, {TG_T}}, /* gradient of log sigmoid(f) */
};

/* Row factor 2^(b_i - b_j + li_j) of the pair (i, j), as in the forward. */
#define GATE TG_GET(TG_AT_Q(B)), TG_GET(TG_AT_KV(B)), TG_SUB, TG_GET(TG_AT_KV(LI)), TG_ADD, TG_EXP2

static const tg_stmt body[] = {
    /* gates and states, as in the forward */
    TG_MAP_TO(TG_AT_KV(A), TG_GET(TG_AT_KV(F)), TG_LOGSIG2),
    TG_MAP_TO(TG_AT_KV(LI), TG_GET(TG_AT_KV(I)), TG_LOGSIG2),
    TG_SCAN_TO(TG_AT_KV(B), TG_AT_KV(A)),
    TG_TOTAL_TO(G, TG_AT_KV(A)),
    TG_MAP_TO(TG_AT_KV(W), TG_GET(G), TG_GET(TG_AT_KV(B)), TG_SUB, TG_GET(TG_AT_KV(LI)), TG_ADD, TG_EXP2),
    TG_MAP_TO(TG_AT_KV(KW), TG_GET(TG_AT_KV(K)), TG_GET(TG_AT_KV(W)), TG_MUL),
    TG_CARRY_TO(C, 0, S0, G, TG_AT_KV(KW), TG_AT_KV(V)),
    /* gradient of the states, from the last chunk to the first */
    TG_MAP_TO(TG_AT_Q(QB), TG_GET(TG_AT_Q(Q)), TG_GET(TG_AT_Q(B)), TG_EXP2, TG_SCALE, TG_MUL, TG_MUL),
    {.op = TG_STMT_CARRY, .flags = TG_REVERSE, .out = DC, .final_ = DS0, .init = DS, .decay = G, .a = TG_AT_Q(QB), .b = TG_AT_Q(DH), TG_HERE},
    TG_CONTRACT_TO(X, C, DC),
    /* dQ = ((dH V^T) o D) K + (2^b o dH) C^T, times the scale */
    TG_CONTRACT_TO(TG_AT_Q(DQI), TG_AT_Q(DH), C),
    TG_MAP_TO(TG_AT_Q(DQG), TG_GET(TG_AT_Q(DQI)), TG_GET(TG_AT_Q(B)), TG_EXP2, TG_MUL),
    TG_CONTRACT_TO(TG_AT_Q(RX), TG_AT_Q(Q), TG_AT_Q(DQG)),
    TG_CONTRACT_TO(DP, TG_AT_Q(DH), TG_AT_KV(V)),
    TG_MAP_TO(DPG, GATE, TG_GET(DP), TG_MUL, TG_CAUSAL),
    TG_CONTRACT_ONTO(TG_AT_Q(DQS), TG_AT_Q(DQG), DPG, TG_AT_KV(K)),
    TG_CONTRACT_TO(QS, TG_AT_Q(Q), TG_AT_KV(K)),
    TG_CONTRACT_TO(TG_AT_Q(RE), DPG, QS),
    TG_MAP_TO(TG_AT_Q(DQ), TG_GET(TG_AT_Q(DQS)), TG_SCALE, TG_MUL),
    /* dK = ((V dH^T) o D^T) Qs + (w o V) dC^T */
    TG_CONTRACT_TO(TG_AT_KV(DKI), TG_AT_KV(V), DC),
    TG_MAP_TO(TG_AT_KV(DKG), TG_GET(TG_AT_KV(DKI)), TG_GET(TG_AT_KV(W)), TG_MUL),
    TG_CONTRACT_TO(TG_AT_KV(KX), TG_AT_KV(K), TG_AT_KV(DKG)),
    TG_CONTRACT_TO(KP, TG_AT_KV(V), TG_AT_Q(DH)),
    TG_MAP_TO(KPG, GATE, TG_GET(KP), TG_MUL, TG_SCALE, TG_MUL, TG_CAUSAL),
    TG_CONTRACT_ONTO(TG_AT_KV(DKS), TG_AT_KV(DKG), KPG, TG_AT_Q(Q)),
    TG_CONTRACT_TO(KQ, TG_AT_KV(K), TG_AT_Q(Q)),
    TG_CONTRACT_TO(TG_AT_KV(CE), KPG, KQ),
    TG_MAP_TO(TG_AT_KV(DK), TG_GET(TG_AT_KV(DKS))),
    /* dV = ((K Qs^T) o D^T) dH + (w o K) dC */
    TG_CONTRACT_TO(TG_AT_KV(DVI), TG_AT_KV(K), DC),
    TG_MAP_TO(TG_AT_KV(DVG), TG_GET(TG_AT_KV(DVI)), TG_GET(TG_AT_KV(W)), TG_MUL),
    TG_CONTRACT_TO(VP, TG_AT_KV(K), TG_AT_Q(Q)),
    TG_MAP_TO(VPG, GATE, TG_GET(VP), TG_MUL, TG_SCALE, TG_MUL, TG_CAUSAL),
    TG_CONTRACT_ONTO(TG_AT_KV(DV), TG_AT_KV(DVG), VPG, TG_AT_Q(DH)),
    /* gates: the suffix sum is the total less the exclusive prefix */
    TG_MAP_TO(TG_AT_KV(E), TG_GET(TG_AT_KV(RE)), TG_GET(TG_AT_KV(RX)), TG_ADD, TG_SCALE, TG_MUL, TG_GET(TG_AT_KV(CE)), TG_SUB,
              TG_GET(TG_AT_KV(KX)), TG_SUB),
    TG_SCAN_TO(TG_AT_KV(PE), TG_AT_KV(E)),
    TG_TOTAL_TO(TE, TG_AT_KV(E)),
    TG_TOTAL_TO(TX, TG_AT_KV(KX)),
    TG_MAP_TO(TG_AT_KV(DA), TG_GET(TE), TG_GET(TG_AT_KV(PE)), TG_SUB, TG_GET(TG_AT_KV(E)), TG_ADD, TG_GET(TX), TG_ADD, TG_GET(G), TG_EXP2,
              TG_GET(X), TG_MUL, TG_ADD),
    TG_MAP_TO(TG_AT_KV(DF), TG_GET(TG_AT_KV(DA)), TG_GET(TG_AT_KV(F)), TG_NEG, TG_SIGMOID, TG_MUL),
    TG_MAP_TO(TG_AT_KV(DI), TG_GET(TG_AT_KV(CE)), TG_GET(TG_AT_KV(KX)), TG_ADD, TG_GET(TG_AT_KV(I)), TG_NEG, TG_SIGMOID, TG_MUL),
};

const tg_algorithm tg_mlstm_sig_backward_algorithm = {
    TG_HEADER(tg_algorithm),
    .name = "mlstm-sig-backward",
    .title = "mLSTM with sigmoid input gate, gradients (TFLA, arXiv 2503.14376, App. B)",
    .file = __FILE__,
    .tensors = tensors,
    .n_tensors = N_TILES,
    .n_body = TG_COUNT(body),
    .body = body,
};

/* Table 1's rows, states recomputed. dQ and dK sum rows of E, which needs whole rows of q and k: their block of
 * dqk is all of it, and 128 is as far as that goes. */
static const tg_schedule tfla = {
    TG_HEADER(tg_schedule),
    .name = "tfla",
    .file = __FILE__,
    .algorithm = &tg_mlstm_sig_backward_algorithm,
    .chunk = 128,
    .n_rows = 7,
    .rows = {
        {.name = "gates", .outputs = {B, LI, G, W}, .warps = 4, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(128)}},
        {.name = "state", .outputs = {C}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 3, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(64), [TG_DQK] = TG_P(64), [TG_DHV] = TG_P(128)}},
        {.name = "dstate", .outputs = {DC, X}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 3, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(64), [TG_DQK] = TG_P(64), [TG_DHV] = TG_P(128)}},
        {.name = "dQ", .outputs = {DQ, RE, RX}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .blocks_per_sm = 1, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_LKV] = TG_L(32), [TG_DQK] = TG_P(0), [TG_DHV] = TG_L(128)}},
        {.name = "dK", .outputs = {DK, CE, KX}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .blocks_per_sm = 1, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(32), [TG_LKV] = TG_P(64), [TG_DQK] = TG_P(0), [TG_DHV] = TG_L(128)}},
        {.name = "dV", .outputs = {DV}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .blocks_per_sm = 1, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(32), [TG_LKV] = TG_P(64), [TG_DQK] = TG_L(128), [TG_DHV] = TG_P(128)}},
        {.name = "dgates", .outputs = {DF, DI, E, PE}, .warps = 4, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(128)}},
    },
};

/* One head: what its tokens need in both directions. */
struct head {
    int64_t tokens, dqk, dhv;
    double scale;
    const double *q, *k, *v, *f, *i, *dh;
    double *state, *dstate; /* states before each token and after the last; gradient of the current one */
};

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static void run_forward(const struct head *h)
{
    const int64_t n = h->dqk * h->dhv;
    for (int64_t t = 0; t < h->tokens; t++)
        for (int64_t x = 0; x < h->dqk; x++)
            for (int64_t y = 0; y < h->dhv; y++)
                h->state[(t + 1) * n + x * h->dhv + y] = sigmoid(h->f[t]) * h->state[t * n + x * h->dhv + y] +
                                                         sigmoid(h->i[t]) * h->k[t * h->dqk + x] * h->v[t * h->dhv + y];
}

/* Token t, its state's gradient arriving in dstate; outputs at token t; leaves the gradient for t - 1. */
static void step_back(const struct head *h, int64_t t, double *dq, double *dk, double *dv, double *df, double *di)
{
    const double forget = sigmoid(h->f[t]), input = sigmoid(h->i[t]);
    const double *before = h->state + t * h->dqk * h->dhv, *after = before + h->dqk * h->dhv;
    const double *q = h->q + t * h->dqk, *k = h->k + t * h->dqk, *v = h->v + t * h->dhv, *dh = h->dh + t * h->dhv;
    double d_forget = 0, d_input = 0;
    memset(dv, 0, (size_t)h->dhv * sizeof *dv);
    for (int64_t x = 0; x < h->dqk; x++) {
        dq[x] = dk[x] = 0;
        for (int64_t y = 0; y < h->dhv; y++) {
            double *d = &h->dstate[x * h->dhv + y];
            *d += h->scale * q[x] * dh[y];
            dq[x] += h->scale * after[x * h->dhv + y] * dh[y];
            dk[x] += input * *d * v[y];
            dv[y] += input * *d * k[x];
            d_forget += *d * before[x * h->dhv + y];
            d_input += *d * k[x] * v[y];
            *d *= forget;
        }
    }
    *df = d_forget * forget * (1 - forget);
    *di = d_input * input * (1 - input);
}

/* The recurrence and its adjoint, token by token, in fp64. */
static void oracle(const tg_oracle_call *c)
{
    const int64_t n = c->dqk * c->dhv;
    double *state = malloc((size_t)((c->tokens + 1) * n) * sizeof *state), *dstate = malloc((size_t)n * sizeof *dstate);
    for (int64_t head = 0; state && dstate && head < c->batch * c->heads; head++) {
        const int64_t t0 = head * c->tokens;
        const struct head h = {c->tokens, c->dqk, c->dhv, c->scale, c->in[Q] + t0 * c->dqk, c->in[K] + t0 * c->dqk, c->in[V] + t0 * c->dhv,
                               c->in[F] + t0, c->in[I] + t0, c->in[DH] + t0 * c->dhv, state, dstate};
        for (int64_t s = 0; s < n; s++) {
            state[s] = c->in[S0] ? c->in[S0][head * n + s] : 0;
            dstate[s] = c->in[DS] ? c->in[DS][head * n + s] : 0;
        }
        run_forward(&h);
        for (int64_t t = c->tokens - 1; t >= 0; t--)
            step_back(&h, t, c->out[DQ] + (t0 + t) * c->dqk, c->out[DK] + (t0 + t) * c->dqk, c->out[DV] + (t0 + t) * c->dhv, c->out[DF] + t0 + t,
                      c->out[DI] + t0 + t);
        if (c->out[DS0])
            memcpy(c->out[DS0] + head * n, dstate, (size_t)n * sizeof *dstate);
    }
    free(state);
    free(dstate);
}

static const char *const aliases[] = {NULL};
static const tg_schedule *const schedules[] = {&tfla, NULL};

const tg_variant tg_mlstm_sig_backward = {
    TG_HEADER(tg_variant),
    .name = "mlstm-sig-backward",
    .aliases = aliases,
    .algorithm = &tg_mlstm_sig_backward_algorithm,
    .schedules = schedules,
    .oracle = oracle,
};
