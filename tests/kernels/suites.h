/* tests/kernels/suites.h - the parts of test_kernels. */
#ifndef TEGULA_TESTS_SUITES_H
#define TEGULA_TESTS_SUITES_H

void suite_cases(void);          /* cases.def against the oracle */
void suite_family(void);         /* family.def: every variant, forward and backward */
void suite_properties(void);     /* calls that must give the same bits */
void suite_agree(void);          /* chunks, the parallel form, decode steps */
void suite_nan(void);            /* where a NaN goes */
void suite_nan_family(void);     /* and in packed calls of heads in groups */
void suite_mutants(void);        /* damaged kernels are found out; emulator only */
void suite_large(void);          /* sizes that take a GPU */
void suite_declared(void);       /* declarations outside the family */
void suite_decays(void);         /* products with a decay */
void suite_together(void);       /* products that are made together */
void suite_alike(void);          /* inverses where they are largest */
void suite_carried_twice(void);  /* ... and sums over many chunks that nothing forgets */
void suite_long_fp32(void);      /* ... in fp32 */
void suite_found(void);          /* what random declarations have found */
void suite_found_states(void);   /* ... in states on mma.sync */
void suite_states(void);         /* states.def: as engines keep them */
void suite_mutants_states(void); /* ... damaged; emulator only */

#endif
