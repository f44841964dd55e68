/* compiler/lower.h - what the compiler asks of lower/: plan -> LLVM IR -> PTX -> cubin. */
#ifndef TEGULA_LOWER_H
#define TEGULA_LOWER_H

#include "compiler/plan.h"

/* What lowering one plan gives. Texts are malloc'ed; free with lower_free. */
struct lowered {
    char *llvm;
    char *ptx;
    void *cubin;
    size_t cubin_bytes;
    uint32_t registers, spill_bytes, n_mma;
    bool confession; /* ptxas says that it had to repair the program: C75xx */
};

/* Lowers a plan to PTX. `keep_llvm`: also print the optimised IR. False after reporting why not. */
bool lower_plan(const struct plan *p, bool keep_llvm, struct lowered *out);

/* ptxas.c: assembles out->ptx; fills cubin, registers, spill_bytes, confession, and judges them. */
bool lower_assemble(const struct plan *p, const char *ptxas, bool strict, struct lowered *out);

/* Says what is amiss with these numbers, in the words of the log of ptxas. With `strict`, spills and C75xx messages are
 * errors, otherwise warnings. */
bool lower_judge(const struct plan *p, const char *log, bool strict, const struct lowered *out);

void lower_free(struct lowered *out);

#endif
