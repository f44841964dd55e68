/* variants/variants.h - the variants that come with Tegula. */
#ifndef TEGULA_VARIANTS_H
#define TEGULA_VARIANTS_H

#include "../dsl/tegula.h"

#ifdef __cplusplus
extern "C" {
#endif

TG_API extern const tg_variant tg_linear, tg_retention, tg_lightning, tg_gated_retention, tg_simple_gla, tg_mamba2, tg_mlstm_sig, tg_mlstm_sig_norm,
    tg_mlstm_exp, tg_nla, tg_nla_full, tg_gla, tg_vector_decay, tg_hgrn2, tg_delta_net, tg_gated_delta, tg_kda, tg_kda_gate, tg_kda_safe,
    tg_delta_net_unit, tg_gated_delta_unit, tg_gated_delta_gate, tg_rwkv6, tg_dfw,
    tg_srms_norm, tg_srms_norm_silu, tg_srms_norm_sigmoid, tg_rms_norm, tg_rms_norm_silu, tg_rms_norm_sigmoid, tg_conv4, tg_conv4_bias,
    tg_srms_norm_group, tg_rms_norm_group, tg_rms_norm_group_silu,
    tg_rotary, tg_lrpe;
/* Their forwards, for schedules of one's own; variants/scalar.h, variants/nla.h, variants/vector.h, variants/delta.h, variants/kda.h, variants/norm.h and variants/conv.h name the tiles. */
TG_API extern const tg_algorithm tg_linear_algorithm, tg_retention_algorithm, tg_lightning_algorithm, tg_gated_retention_algorithm, tg_simple_gla_algorithm, tg_mamba2_algorithm,
    tg_mlstm_sig_algorithm, tg_mlstm_sig_norm_algorithm, tg_mlstm_exp_algorithm, tg_nla_algorithm, tg_nla_full_algorithm,
    tg_gla_algorithm, tg_vector_decay_algorithm, tg_hgrn2_algorithm, tg_delta_net_algorithm, tg_gated_delta_algorithm, tg_kda_algorithm, tg_kda_gate_algorithm, tg_kda_safe_algorithm,
    tg_delta_net_unit_algorithm, tg_gated_delta_unit_algorithm, tg_gated_delta_gate_algorithm, tg_rwkv6_algorithm, tg_dfw_algorithm,
    tg_srms_norm_algorithm, tg_srms_norm_silu_algorithm, tg_srms_norm_sigmoid_algorithm, tg_rms_norm_algorithm, tg_rms_norm_silu_algorithm, tg_rms_norm_sigmoid_algorithm,
    tg_conv4_algorithm, tg_conv4_bias_algorithm,
    tg_srms_norm_group_algorithm, tg_rms_norm_group_algorithm, tg_rms_norm_group_silu_algorithm,
    tg_rotary_algorithm, tg_lrpe_algorithm;

/* Their gradients with the states of every chunk in memory. */
TG_API extern const tg_algorithm tg_linear_backward_algorithm, tg_retention_backward_algorithm, tg_lightning_backward_algorithm,
    tg_gated_retention_backward_algorithm, tg_simple_gla_backward_algorithm, tg_mamba2_backward_algorithm,
    tg_mlstm_sig_backward_algorithm, tg_mlstm_sig_norm_backward_algorithm, tg_mlstm_exp_backward_algorithm,
    tg_nla_backward_algorithm, tg_nla_full_backward_algorithm, tg_gla_backward_algorithm, tg_vector_decay_backward_algorithm, tg_hgrn2_backward_algorithm, tg_delta_net_backward_algorithm,
    tg_gated_delta_backward_algorithm, tg_kda_backward_algorithm, tg_kda_gate_backward_algorithm,
    tg_kda_safe_backward_algorithm, tg_delta_net_unit_backward_algorithm, tg_gated_delta_unit_backward_algorithm, tg_gated_delta_gate_backward_algorithm, tg_rwkv6_backward_algorithm, tg_dfw_backward_algorithm,
    tg_srms_norm_backward_algorithm, tg_srms_norm_silu_backward_algorithm, tg_srms_norm_sigmoid_backward_algorithm, tg_rms_norm_backward_algorithm, tg_rms_norm_silu_backward_algorithm, tg_rms_norm_sigmoid_backward_algorithm,
    tg_conv4_backward_algorithm, tg_conv4_bias_backward_algorithm,
    tg_srms_norm_group_backward_algorithm, tg_rms_norm_group_backward_algorithm, tg_rms_norm_group_silu_backward_algorithm,
    tg_rotary_backward_algorithm, tg_lrpe_backward_algorithm;
/* The same where no state of a chunk is: <C, dC>, which gates need, comes another way. linear and lightning have no such gates, and one way. */
TG_API extern const tg_algorithm tg_retention_walked_algorithm, tg_gated_retention_walked_algorithm, tg_simple_gla_walked_algorithm,
    tg_mamba2_walked_algorithm, tg_mlstm_sig_walked_algorithm, tg_mlstm_sig_norm_walked_algorithm, tg_mlstm_exp_walked_algorithm, tg_delta_net_walked_algorithm,
    tg_gated_delta_walked_algorithm, tg_delta_net_unit_walked_algorithm, tg_gated_delta_unit_walked_algorithm, tg_gated_delta_gate_walked_algorithm;
/* ... and where a thread block has one head: rows and columns of E = dP o P are q.dq and k.dk there. */
TG_API extern const tg_algorithm tg_retention_alone_algorithm, tg_gated_retention_alone_algorithm, tg_simple_gla_alone_algorithm,
    tg_mamba2_alone_algorithm, tg_mlstm_sig_alone_algorithm;

/* All of them, NULL-terminated; each leads to its backward. */
TG_API extern const tg_variant *const tg_builtin_variants[];

/* By name or alias, backwards too, and either followed by "-state": its final states alone (tg_states_of). NULL if there is none. */
TG_API const tg_variant *tg_variant_find(const char *name);

#ifdef __cplusplus
}
#endif

#endif
