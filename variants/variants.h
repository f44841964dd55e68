/* variants/variants.h - the variants that come with Tegula. */
#ifndef TEGULA_VARIANTS_H
#define TEGULA_VARIANTS_H

#include "dsl/tegula.h"

extern const tg_variant tg_mlstm_sig;
extern const tg_algorithm tg_mlstm_sig_algorithm; /* for schedules declared elsewhere */

/* All of them, NULL-terminated. */
extern const tg_variant *const tg_builtin_variants[];

/* By name or alias; NULL if there is none. */
const tg_variant *tg_variant_find(const char *name);

#endif
