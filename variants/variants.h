/* variants/variants.h - the variants that come with Tegula. */
#ifndef TEGULA_VARIANTS_H
#define TEGULA_VARIANTS_H

#include "dsl/tegula.h"

TG_API extern const tg_variant tg_mlstm_sig;
TG_API extern const tg_variant tg_mlstm_sig_backward;
TG_API extern const tg_algorithm tg_mlstm_sig_algorithm; /* tiles: variants/mlstm_sig.h */

/* All of them, NULL-terminated. */
TG_API extern const tg_variant *const tg_builtin_variants[];

/* By name or alias; NULL if there is none. */
TG_API const tg_variant *tg_variant_find(const char *name);

#endif
