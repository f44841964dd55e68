/* variants/kda.c - Kimi delta attention: the delta rule with a log decay for every token and key dimension:
 *
 *     S' = diag(e^{g_t}) S_{t-1}      S_t = S' + beta_t k_t (v_t - S'^T k_t)^T      h_t = scale S_t^T q_t */
#include "variants/kda.h"

#define VARIANT kda
#define VARIANT_NAME "kda"
#define VARIANT_TITLE "KDA: the delta rule with a log decay of a key dimension"
#define VARIANT_ALIASES "kda_varlen",
#define SCALARS
#define KEY TG_KV(K)
#define QUERY TG_Q(Q)
#define GATES TG_MAP_TO(TG_AT_KV(A), TG_MAX(TG_MUL(TG_KV(G), TG_NUM(LOG2_E)), TG_NUM(LEAST_LOG2))),
#define GATE_TENSORS [G] = {"g", TG_F32, TG_IN, {TG_T, TG_DQK}, TG_DRAWN_LOG_DECAY},
#define GRADIENT_TENSORS [DA] = {"dg", TG_F32, TG_OUT, {TG_T, TG_DQK}},

#define GATE_GRADIENTS

static const struct delta_oracle how = {.log_decay = G, .dlog_decay = DA, .of_channel = true};

#include "variants/kda.inc"
