/* variants/variants.c - the list of built-in variants; adding one is a line here and a file beside it. */
#include "variants/variants.h"

#include <stdatomic.h>
#include <stdbool.h>
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

static bool has_name(const tg_variant *variant, const char *name, size_t length)
{
    return strlen(variant->name) == length && memcmp(variant->name, name, length) == 0;
}

static const tg_variant *find(const char *name, size_t length, uint32_t *place)
{
    *place = 0;
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++, *place += 2) {
        if (has_name(*v, name, length))
            return *v;
        if ((*v)->backward && has_name((*v)->backward, name, length)) {
            ++*place;
            return (*v)->backward;
        }
        for (const char *const *alias = (*v)->aliases; alias && *alias; alias++)
            if (strlen(*alias) == length && memcmp(*alias, name, length) == 0)
                return *v;
    }
    return NULL;
}

/* Made when first asked for, by whoever is first, and there for good. */
static const tg_variant *states_of(const tg_variant *variant, uint32_t place)
{
    static _Atomic(const tg_variant *) states[2 * TG_COUNT(tg_builtin_variants)];
    const tg_variant *made = atomic_load(&states[place]), *none = NULL;
    if (made)
        return made;
    made = tg_states_of(variant);
    if (made && !atomic_compare_exchange_strong(&states[place], &none, made)) {
        tg_states_free(made);
        made = none;
    }
    return made;
}

const tg_variant *tg_variant_find(const char *name)
{
    static const char suffix[] = "-state";
    const size_t length = strlen(name), end = sizeof suffix - 1;
    const bool is_state = length > end && strcmp(name + length - end, suffix) == 0;
    uint32_t place;
    const tg_variant *found = find(name, is_state ? length - end : length, &place);
    return found && is_state ? states_of(found, place) : found;
}
