/* tests/kernels/judge.c - how far from the fp64 oracle an output may be. */
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Beside the limits of DESIGN section 4, which cli/oracle.c keeps and explains:
 * f16 operands have 11 bits where bf16 have 8, so 4e-3 / 8 = 5e-4 is what the same roundings give;
 * 1e-3 leaves room for a state that outgrows the fine part of f16's range. Gradients: twice that,
 * as with bf16. */
static const double rms_f16 = 1e-3;
/* A head's own RMS may be far below the tensor's, and with few tokens a head is a small sample
 * whose error scatters: 3 is what is left of 4e-3 over the expected 2.5e-3, twice. */
static const double head_slack = 3;

static double rms_of(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum / (double)n);
}

static bool head_right(const struct host_tensor *tensor, const double *truth, tg_dtype io,
                       double limit, int64_t head, bool is_told)
{
    const size_t n = tensor->n / (size_t)(tensor->extent[0] * tensor->extent[1]);
    const size_t at = (size_t)head * n;
    const char *data = (const char *)tensor->data + at * st_dtype_bytes(tensor->dtype);
    const struct tensor_error error = num_compare((struct num_const_array){data, tensor->dtype, n},
                                                  (struct num_const_array){truth + at, ST_F64, n});
    /* f16 has nothing below 2^-24: weighted keys of closed gates are zero there, and so is a state
     * that is made of nothing else. */
    const bool is_below_f16 = io == TG_F16 && rms_of(truth + at, n) < 0x1p-24;
    const bool ok = !error.finite_mismatch && (is_below_f16 || error.rms_ratio <= limit);
    if (is_told)
        tap_expect(ok, "%s of head %lld: rms %.2e, at most %.2e%s", tensor->name, (long long)head,
                   error.rms_ratio, limit, error.finite_mismatch ? "; not finite" : "");
    return ok;
}

static bool output_right(const struct problem *problem, const struct host_tensor *tensor,
                         const double *truth, bool is_told)
{
    struct verdict v = judge(problem, tensor, (struct num_const_array){truth, ST_F64, tensor->n},
                             (struct levels){0, 0});
    if (problem->io == TG_F16) {
        v.rms_limit = tensor->is_gradient ? 2 * rms_f16 : rms_f16;
        v.ok &= v.error.rms_ratio <= v.rms_limit;
    }
    bool ok = v.ok;
    if (is_told)
        tap_expect(v.ok, "%s: rms %.2e of at most %.2e, max %.2e of at most %.2e, worst at %lld%s",
                   v.name, v.error.rms_ratio, v.rms_limit, v.error.max_ratio, v.max_limit,
                   (long long)v.error.worst_index, v.error.finite_mismatch ? "; not finite" : "");
    for (int64_t head = 0; tensor->n && head < tensor->extent[0] * tensor->extent[1]; head++)
        ok &= head_right(tensor, truth, problem->io, head_slack * v.rms_limit, head, is_told);
    return ok;
}

bool outputs_right(struct problem *problem, bool is_told)
{
    struct truth truth;
    bool ok = true;
    if (!truth_compute(&machine_context, problem, &truth))
        return tap_expect(false, "no oracle: %s", log_text());
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const struct host_tensor *tensor = &problem->tensors[i];
        if (tensor->flags & TG_OUT && tensor->data && !tensor->is_kept)
            ok &= output_right(problem, tensor, truth.out[tensor->tile], is_told);
    }
    truth_free(&truth);
    return ok;
}

/* To be written. */
bool outputs_as_conditioned(struct problem *problem)
{
    return outputs_right(problem, true);
}
