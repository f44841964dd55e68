/* tuning/time.c - how long calls take. */
#include "tuning/tuning.h"

enum { WARMUP = 3 };

/* Twice the cache, so that nothing of the last run is left in it. */
static size_t flush_bytes(const tg_call *call, bool flush)
{
    return flush ? 2 * (size_t)call->machine->device.l2_bytes : 0;
}

tg_status tg_call_time(tg_call *call, uint32_t runs, bool flush, float *times, const tg_sink *sink)
{
    return tg_time(call->module, &call->sizes, call->scalars, call->args, call->n_args, call->workspace, WARMUP, runs,
                   flush_bytes(call, flush), times, sink);
}

tg_status tg_call_time_kernels(tg_call *call, uint32_t runs, bool flush, float *times, const tg_sink *sink)
{
    return tg_time_kernels(call->module, &call->sizes, call->scalars, call->args, call->n_args, call->workspace, WARMUP,
                           runs, flush_bytes(call, flush), times, sink);
}

double tg_median(const float *ascending, uint32_t n)
{
    return ((double)ascending[(n - 1) / 2] + (double)ascending[n / 2]) / 2;
}
