/* tests/kernels/alike.c - what the inverse of the delta rule must be good to, where it is largest (tests/alike.h).
 *
 * Roundings to bf16 of what products take and of outputs make 6.6e-3 there (tests/test_levels.c), and nothing else may be of
 * their size. With leading parts alone in the products that make T, h is off by 14 to 16e-3, in bf16 and in f16. */
#include "harness.h"
#include "suites.h"
#include "tests/alike.h"

static void judge_alike(struct trial *trial)
{
    static const char *const names[] = {"h", "S"};
    const double limit = trial->spec->io == TG_BF16 ? 9e-3 : 9e-3 / 8; /* f16 has three bits more */
    tg_truth truth;
    if (!tap_expect(truth_compute(&machine_context, &trial->problem, 0, &truth), "no oracle"))
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const tg_host_tensor *x = tg_problem_tensor(&trial->problem, names[i]);
        const tg_verdict verdict =
            tg_judge(&trial->problem, x, (tg_const_array){truth.out[x->tile], TG_NUM_F64, x->n}, (tg_levels){0, 0});
        tap_expect(verdict.error.rms_ratio <= limit, "%s: rms %.2e, at most %.2e", x->name, verdict.error.rms_ratio,
                   limit);
        tap_note("%s: %.2e", x->name, verdict.error.rms_ratio);
    }
    tg_truth_free(&truth);
}

static void try_alike(const struct spec *spec)
{
    struct trial trial;
    if (!tap_begin("keys that are alike, beta near 2, %s dqk=%d %s", tg_dtype_name(spec->io), (int)spec->dqk,
                   spec->schedule))
        return;
    if (trial_open(&trial, spec)) {
        make_alike(&trial.problem);
        if (trial_runs(&trial))
            judge_alike(&trial);
        trial_close(&trial);
    }
    tap_end();
}

void suite_alike(void)
{
    static const struct spec specs[] = {
        {.variant = "delta-net", SPEC_SIZES(BF16, 1, 2, 128, 64, 64), .schedule = "walk-narrow"},
        {.variant = "delta-net", SPEC_SIZES(F16, 1, 2, 128, 64, 64), .schedule = "walk-narrow"},
        {.variant = "delta-net", SPEC_SIZES(BF16, 1, 2, 128, 48, 64), .schedule = "portable"},
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        try_alike(&specs[i]);
}
