/* variants/variants.c - the list of built-in variants; adding one is a line here and a file beside it. */
#include "variants/variants.h"

#include <string.h>

const tg_variant *const tg_builtin_variants[] = {
    &tg_mlstm_sig,
    &tg_mlstm_sig_backward,
    NULL,
};

const tg_variant *tg_variant_find(const char *name)
{
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++) {
        if (strcmp((*v)->name, name) == 0)
            return *v;
        for (const char *const *alias = (*v)->aliases; alias && *alias; alias++)
            if (strcmp(*alias, name) == 0)
                return *v;
    }
    return NULL;
}
