/* variants/dfw.c - linear attention with a log decay of a key dimension and one of a value dimension, as they are given (dfw.h). */
#include "variants/dfw.h"

#define LOG2_E     1.44269504f
#define LEAST_LOG2 (-150.0f) /* as in vector.h */

#define KEYS       {TG_T, TG_DQK}
#define VALUES     {TG_T, TG_DHV}
#define STATES     {TG_CHUNK, TG_DQK, TG_DHV}
#define POSITIONS  {TG_LQ, TG_LKV}
#define TRANSPOSED {TG_LKV, TG_LQ}
#define TILE(name_, ...)                                                                                               \
    {                                                                                                                  \
        name_, TG_F32, 0, __VA_ARGS__                                                                                  \
    }
#define SUMS(name_, axis)                                                                                              \
    {                                                                                                                  \
        name_, TG_F32X2, 0, {TG_CHUNK, axis}                                                                           \
    }

/* ---- tensors ---- */

#define COMMON_TENSORS                                                                                                 \
    [Q] = {"q", TG_IO, TG_IN | TG_SHARED, KEYS}, [K] = {"k", TG_IO, TG_IN | TG_SHARED, KEYS}, [V] = {"v", TG_IO, TG_IN, VALUES}, \
    [S0] = {"S0", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK, TG_DHV}}, [GL] = {"gl", TG_F32, TG_IN, KEYS},                   \
    [GR] = {"gr", TG_F32, TG_IN, VALUES}, [AL] = TILE("log2_l", KEYS), [BL] = TILE("bl", KEYS),                         \
    [GTL] = TILE("gtl", {TG_CHUNK, TG_DQK}), [AR] = TILE("log2_r", VALUES), [BR] = TILE("br", VALUES),                  \
    [GTR] = TILE("gtr", {TG_CHUNK, TG_DHV}), [G] = TILE("g", STATES), [KE] = {"ke", TG_IO, 0, KEYS},                    \
    [VE] = {"ve", TG_IO, 0, VALUES}, [QS] = TILE("qs", KEYS), [QB] = {"qb", TG_IO, 0, KEYS}, [CK] = TILE("states", STATES), \
    [INTER] = TILE("inter", VALUES), [OWN] = TILE("own", VALUES), [WR] = TILE("wr", VALUES), [P] = TILE("p", POSITIONS), [SUM] = TILE("sum", VALUES),

static const tg_tensor forward_tensors[] = {
    COMMON_TENSORS[H] = {"h", TG_IO, TG_OUT, VALUES},
    [S] = {"S", TG_F32, TG_OUT | TG_OPTIONAL, {TG_DQK, TG_DHV}},
};

static const tg_tensor backward_tensors[] = {
    COMMON_TENSORS[DH] = {"dh", TG_IO, TG_IN, VALUES},
    [DS] = {"dS", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [DQ] = {"dq", TG_IO, TG_OUT | TG_SHARED, KEYS},
    [DK] = {"dk", TG_IO, TG_OUT | TG_SHARED, KEYS},
    [DV] = {"dv", TG_IO, TG_OUT, VALUES},
    [DS0] = {"dS0", TG_F32, TG_OUT | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [DGL] = {"dgl", TG_F32, TG_OUT, KEYS},
    [DGR] = {"dgr", TG_F32, TG_OUT, VALUES},
    [DHB] = {"dhb", TG_IO, 0, VALUES},
    [DC] = TILE("dstates", STATES),
    [DQI] = TILE("dqi", KEYS),
    [DQG] = TILE("dqg", KEYS),
    [DP] = TILE("dp", POSITIONS),
    [DQS] = TILE("dqs", KEYS),
    [DQH] = TILE("dqh", KEYS),
    [DKI] = TILE("dki", KEYS),
    [DKG] = TILE("dkg", KEYS),
    [KP] = TILE("kp", TRANSPOSED),
    [DKS] = TILE("dks", KEYS),
    [DKH] = TILE("dkh", KEYS),
    [DVI] = TILE("dvi", VALUES),
    [DVG] = TILE("dvg", VALUES),
    [VQ] = TILE("vq", KEYS),
    [VP] = TILE("vp", TRANSPOSED),
    [DVS] = TILE("dvs", VALUES),
    [QDQ] = TILE("qdq", KEYS),
    [KDK] = TILE("kdk", KEYS),
    [RK] = TILE("rk", KEYS),
    [HDH] = TILE("hdh", VALUES),
    [VDV] = TILE("vdv", VALUES),
    [RV] = TILE("rv", VALUES),
    [LEFT] = TILE("left", STATES),
    [XL] = TILE("xl", {TG_CHUNK, TG_DQK}),
    [XR] = TILE("xr", {TG_CHUNK, TG_DHV}),
    [EL] = TILE("el", KEYS),
    [PEL] = {"pel", TG_F32X2, 0, KEYS},
    [TEL] = SUMS("tel", TG_DQK),
    [TRL] = SUMS("trl", TG_DQK),
    [ER] = TILE("er", VALUES),
    [PER] = {"per", TG_F32X2, 0, VALUES},
    [TER] = SUMS("ter", TG_DHV),
    [TRR] = SUMS("trr", TG_DHV),
};

/* ---- statements ---- */

#define DECAY(a, b, gt, log)                                                                                           \
    TG_MAP_TO(TG_AT_KV(a), TG_MAX(TG_MUL(TG_KV(log), TG_NUM(LOG2_E)), TG_NUM(LEAST_LOG2))),                            \
        TG_SCAN_TO(TG_AT_KV(b), TG_AT_KV(a)), TG_TOTAL_TO(gt, TG_AT_KV(a))
#define PAIR_TO(out, a, b, by)           TG_CONTRACT_DECAY_TO(out, a, b, TG_AT_Q(by), TG_AT_KV(by))
#define SPREAD_ONTO(out, init, a, b, by) TG_CONTRACT_DECAY_ONTO(out, init, a, b, TG_AT_Q(by), TG_AT_KV(by))
#define TO_END(gt, b) TG_EXP2(TG_SUB(TG_TILE(gt), TG_KV(b)))

/* States, and what is read of them and of the chunk's own tokens. */
#define CORE(final_)                                                                                                   \
    DECAY(AR, BR, GTR, GR), TG_MAP_TO(TG_AT_KV(WR), TG_EXP2(TG_KV(BR))), TG_MAP_TO(TG_AT_KV(VE), TG_MUL(TG_KV(V), TO_END(GTR, BR))), DECAY(AL, BL, GTL, GL),        \
        TG_MAP_TO(G, TG_ADD(TG_TILE(GTL), TG_TILE(GTR))),                                                              \
        TG_MAP_TO(TG_AT_KV(KE), TG_MUL(TG_KV(K), TO_END(GTL, BL))),                                                    \
        TG_CARRY_TO(CK, final_, S0, G, TG_AT_KV(KE), TG_AT_KV(VE)),                                                    \
        TG_MAP_TO(TG_AT_KV(QB), TG_MUL(TG_KV(Q), TG_MUL(TG_EXP2(TG_KV(BL)), TG_SCALE))),                               \
        TG_CONTRACT_TO(TG_AT_Q(INTER), TG_AT_Q(QB), CK),                                                               \
        TG_MAP_TO(TG_AT_Q(QS), TG_MUL(TG_Q(Q), TG_SCALE)),                                                             \
        PAIR_TO(P, TG_AT_Q(QS), TG_AT_KV(K), BL),                                                                      \
        SPREAD_ONTO(TG_AT_Q(OWN), 0, P, TG_AT_KV(V), BR),                                                              \
        TG_MAP_TO(TG_AT_Q(SUM), TG_ADD(TG_MUL(TG_Q(INTER), TG_Q(WR)), TG_Q(OWN)))

static const tg_stmt forward_body[] = {
    CORE(S),
    TG_MAP_TO(TG_AT_Q(H), TG_Q(SUM)),
};

/* Gradients of the log decays in the chunk form (vector.inc): of rows with q o dq - k o dk, of columns with h o dh - v o dv. What
 * leaves the chunk of the state that arrives has both decays. */
#define DECAY_GRADIENT(da, e, plus, minus, te, pe, tr, r, x)                                                           \
    TG_MAP_TO(TG_AT_KV(e), TG_SUB(TG_KV(plus), TG_KV(minus))), TG_TOTAL_TO(te, TG_AT_KV(e)), TG_TOTAL_TO(tr, TG_AT_KV(r)), \
        {.op = TG_STMT_SCAN, .flags = TG_EXCLUSIVE, .out = TG_AT_KV(pe), .a = TG_AT_KV(e), TG_HERE},                    \
        TG_MAP_TO(TG_AT_KV(da), TG_ADD(TG_ADD(TG_SUB(TG_TILE(te), TG_KV(pe)), TG_TILE(tr)), TG_TILE(x)))

static const tg_stmt backward_body[] = {
    CORE(0),
    TG_MAP_TO(TG_AT_Q(HDH), TG_MUL(TG_Q(SUM), TG_Q(DH))),
    TG_MAP_TO(TG_AT_KV(DHB), TG_MUL(TG_KV(DH), TG_KV(WR))),
    TG_CARRY_BACK_TO(DC, DS0, DS, G, TG_AT_Q(QB), TG_AT_Q(DHB)),
    /* dQ */
    TG_CONTRACT_TO(TG_AT_Q(DQI), TG_AT_Q(DHB), CK),
    TG_MAP_TO(TG_AT_Q(DQG), TG_MUL(TG_Q(DQI), TG_EXP2(TG_Q(BL)))),
    PAIR_TO(DP, TG_AT_Q(DH), TG_AT_KV(V), BR),
    SPREAD_ONTO(TG_AT_Q(DQS), TG_AT_Q(DQG), DP, TG_AT_KV(K), BL),
    TG_MAP_TO(TG_AT_Q(DQH), TG_MUL(TG_Q(DQS), TG_SCALE)),
    TG_TOTAL_TO(TG_AT_Q(DQ), TG_AT_Q(DQH)), /* over the heads that share q */
    TG_MAP_TO(TG_AT_Q(QDQ), TG_MUL(TG_Q(Q), TG_Q(DQH))),
    /* dK */
    TG_CONTRACT_TO(TG_AT_KV(DKI), TG_AT_KV(VE), DC),
    TG_MAP_TO(TG_AT_KV(DKG), TG_MUL(TG_KV(DKI), TO_END(GTL, BL))),
    PAIR_TO(KP, TG_AT_KV(V), TG_AT_Q(DH), BR),
    SPREAD_ONTO(TG_AT_KV(DKS), TG_AT_KV(DKG), KP, TG_AT_Q(QS), BL),
    TG_MAP_TO(TG_AT_KV(DKH), TG_KV(DKS)),
    TG_TOTAL_TO(TG_AT_KV(DK), TG_AT_KV(DKH)), /* over the heads that share k */
    TG_MAP_TO(TG_AT_KV(KDK), TG_MUL(TG_KV(K), TG_KV(DKH))),
    TG_MAP_TO(TG_AT_KV(RK), TG_MUL(TG_KV(K), TG_KV(DKG))),
    /* dV */
    TG_CONTRACT_TO(TG_AT_KV(DVI), TG_AT_KV(KE), DC),
    TG_MAP_TO(TG_AT_KV(DVG), TG_MUL(TG_KV(DVI), TO_END(GTR, BR))),
    TG_MAP_TO(TG_AT_Q(VQ), TG_MUL(TG_Q(Q), TG_SCALE)),
    PAIR_TO(VP, TG_AT_KV(K), TG_AT_Q(VQ), BL),
    SPREAD_ONTO(TG_AT_KV(DVS), TG_AT_KV(DVG), VP, TG_AT_Q(DH), BR),
    TG_MAP_TO(TG_AT_KV(DV), TG_KV(DVS)),
    TG_MAP_TO(TG_AT_KV(VDV), TG_MUL(TG_KV(V), TG_KV(DVS))),
    TG_MAP_TO(TG_AT_KV(RV), TG_MUL(TG_KV(V), TG_KV(DVG))),
    /* gates */
    TG_MAP_TO(LEFT, TG_MUL(TG_TILE(CK), TG_EXP2(TG_ADD(TG_TILE(GTL), TG_TILE(GTR))))),
    TG_CONTRACT_TO(XL, LEFT, DC),
    TG_CONTRACT_TO(XR, LEFT, DC),
    DECAY_GRADIENT(DGL, EL, QDQ, KDK, TEL, PEL, TRL, RK, XL),
    DECAY_GRADIENT(DGR, ER, HDH, VDV, TER, PER, TRR, RV, XR),
};

/* ---- algorithms and variants ---- */

#define TITLE "linear attention with log decays of key and of value dimensions (reference 2.4)"
const tg_algorithm tg_dfw_algorithm = {
    TG_HEADER(tg_algorithm), .name = "dfw", .title = TITLE, .file = __FILE__, .tensors = forward_tensors,
    .n_tensors = TG_COUNT(forward_tensors), .body = forward_body, .n_body = TG_COUNT(forward_body),
};
const tg_algorithm tg_dfw_backward_algorithm = {
    TG_HEADER(tg_algorithm), .name = "dfw-backward", .title = TITLE ", gradients", .file = __FILE__, .tensors = backward_tensors,
    .n_tensors = TG_COUNT(backward_tensors), .body = backward_body, .n_body = TG_COUNT(backward_body),
};

static const tg_variant variant_backward = {
    TG_HEADER(tg_variant), .name = "dfw-backward", .algorithm = &tg_dfw_backward_algorithm, .schedules = tg_dfw_backward,
    .oracle = tg_dfw_oracle_backward,
};
static const char *const aliases[] = {NULL};
const tg_variant tg_dfw = {
    TG_HEADER(tg_variant), .name = "dfw", .aliases = aliases, .algorithm = &tg_dfw_algorithm, .schedules = tg_dfw_forward,
    .oracle = tg_dfw_oracle, .backward = &variant_backward,
};
