/* runtime/set.c - a set of programs into the current context, and the one that a call takes. */
#include "program/set.h"
#include "runtime/internal.h"

#include <stdlib.h>

struct tg_modules {
    const tg_set *set;
    int cc;
    tg_module *modules[TG_MAX_SET_PROGRAMS]; /* NULL: of a branch for other GPUs */
};

/* Of each pair of widths the branch that this GPU takes; *n_loaded counts them. */
static tg_status load_branches(const tg_driver *driver, tg_modules *m, uint32_t *n_loaded, const tg_sink *sink)
{
    const tg_set *set = m->set;
    tg_status status = TG_OK;
    for (uint32_t i = 0; i < set->n_branches && status == TG_OK; i++) {
        const tg_branch *b = &set->branches[i];
        const tg_program *first = &set->programs[b->first];
        if (tg_set_branch(set, m->cc, first->dqk, first->dhv, NULL) != (int)i)
            continue;
        for (uint32_t p = b->first; p < b->first + b->n_programs && status == TG_OK; p++)
            status = tg_load(driver, &set->programs[p], &m->modules[p], sink);
        ++*n_loaded;
    }
    return status;
}

tg_status tg_set_load(const tg_driver *driver, const tg_set *set, tg_modules **modules, const tg_sink *sink)
{
    uint32_t n_loaded = 0;
    if (!driver || !modules)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL, "tg_set_load: %s is NULL", driver ? "modules" : "driver");
    *modules = NULL;
    tg_status status = tg_set_verify(set, sink);
    if (status != TG_OK)
        return status;
    tg_modules *loaded = calloc(1, sizeof *loaded);
    if (!loaded)
        return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "tg_set_load: no memory");
    loaded->set = set;
    cu_device device = 0;
    status = current_device(driver, &device, &loaded->cc, sink);
    if (status == TG_OK)
        status = load_branches(driver, loaded, &n_loaded, sink);
    if (status == TG_OK && n_loaded == 0) {
        (void)tg_set_branch(set, loaded->cc, set->programs->dqk, set->programs->dhv, sink);
        status = TG_E_UNSUPPORTED;
    }
    if (status == TG_OK)
        *modules = loaded;
    else
        tg_set_unload(loaded);
    return status;
}

void tg_set_unload(tg_modules *modules)
{
    if (!modules)
        return;
    for (uint32_t i = 0; i < modules->set->n_programs; i++)
        tg_unload(modules->modules[i]);
    free(modules);
}

const tg_module *tg_set_module(const tg_modules *modules, uint32_t dqk, uint32_t dhv, const tg_sizes *sizes,
                               const tg_sink *sink)
{
    if (!modules || !sizes)
        return tg_report(sink, TG_ERROR, "TG0828", NULL, 0, NULL, "tg_set_module: %s is NULL",
                         modules ? "sizes" : "modules"),
               NULL;
    const int branch = tg_set_branch(modules->set, modules->cc, dqk, dhv, sink);
    const int program = branch < 0 ? -1 : tg_set_pick(modules->set, (uint32_t)branch, sizes, sink);
    return program < 0 ? NULL : modules->modules[program];
}

const tg_program *tg_module_program(const tg_module *module)
{
    return module ? module->program : NULL;
}
