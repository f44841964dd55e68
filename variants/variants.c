/* variants/variants.c - the list of built-in variants; adding one is a line here and a file beside it. */
#include "variants/variants.h"

#include <string.h>

const tg_variant *const tg_builtin_variants[] = {
    &tg_linear,
    &tg_retention,
    &tg_gated_retention,
    &tg_simple_gla,
    &tg_mamba2,
    &tg_mlstm_sig,
    &tg_mlstm_sig_norm,
    &tg_mlstm_exp,
    &tg_lightning,
    &tg_nla,
    &tg_nla_full,
    &tg_gla,
    &tg_delta_net,
    &tg_gated_delta,
    &tg_kda,
    &tg_kda_gate,
    &tg_kda_safe,
    &tg_vector_decay,
    &tg_hgrn2,
    &tg_delta_net_unit,
    &tg_gated_delta_unit,
    &tg_gated_delta_gate,
    &tg_rwkv6,
    &tg_dfw,
    &tg_srms_norm,
    &tg_srms_norm_silu,
    &tg_srms_norm_sigmoid,
    &tg_rms_norm,
    &tg_rms_norm_silu,
    &tg_rms_norm_sigmoid,
    &tg_conv4,
    &tg_conv4_bias,
    &tg_srms_norm_group,
    &tg_rms_norm_group,
    &tg_rms_norm_group_silu,
    &tg_rotary,
    &tg_lrpe,
    NULL,
};

const tg_variant *tg_variant_find(const char *name)
{
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++) {
        if (strcmp((*v)->name, name) == 0)
            return *v;
        if ((*v)->backward && strcmp((*v)->backward->name, name) == 0)
            return (*v)->backward;
        for (const char *const *alias = (*v)->aliases; alias && *alias; alias++)
            if (strcmp(*alias, name) == 0)
                return *v;
    }
    return NULL;
}
