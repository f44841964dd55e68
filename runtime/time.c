/* runtime/time.c - how long a launch takes on the GPU.
 *
 * Everything is queued before anything is waited for: the GPU always has work ahead of it, so that
 * between a pair of events lies the launch and not the CPU. Reading a scratch buffer larger than
 * the L2 between runs makes every run find its inputs in memory, as a layer of a network does. */
#include "runtime/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Ors together 16-byte words [0, n) of `data`, and stores the result if it is all ones: it never
 * is, since the buffer is zeroed, but the compiler of the driver cannot know. */
static const char flush_ptx[] = ".version 7.0\n"
                                ".target sm_80\n"
                                ".address_size 64\n"
                                ".visible .entry tegula_flush(.param .u64 data, .param .u64 n)\n"
                                "{\n"
                                "    .reg .pred %p<3>;\n"
                                "    .reg .b32 %r<9>;\n"
                                "    .reg .b64 %rd<7>;\n"
                                "    ld.param.u64 %rd1, [data];\n"
                                "    ld.param.u64 %rd2, [n];\n"
                                "    cvta.to.global.u64 %rd1, %rd1;\n"
                                "    mov.u32 %r6, %ntid.x;\n"
                                "    mov.u32 %r7, %nctaid.x;\n"
                                "    mul.wide.u32 %rd3, %r6, %r7;\n"
                                "    mov.u32 %r7, %ctaid.x;\n"
                                "    mul.wide.u32 %rd4, %r6, %r7;\n"
                                "    mov.u32 %r8, %tid.x;\n"
                                "    cvt.u64.u32 %rd5, %r8;\n"
                                "    add.s64 %rd4, %rd4, %rd5;\n"
                                "    mov.u32 %r5, 0;\n"
                                "$next:\n"
                                "    setp.ge.u64 %p1, %rd4, %rd2;\n"
                                "    @%p1 bra $done;\n"
                                "    shl.b64 %rd5, %rd4, 4;\n"
                                "    add.s64 %rd6, %rd1, %rd5;\n"
                                "    ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd6];\n"
                                "    or.b32 %r1, %r1, %r2;\n"
                                "    or.b32 %r3, %r3, %r4;\n"
                                "    or.b32 %r5, %r5, %r1;\n"
                                "    or.b32 %r5, %r5, %r3;\n"
                                "    add.s64 %rd4, %rd4, %rd3;\n"
                                "    bra $next;\n"
                                "$done:\n"
                                "    setp.eq.s32 %p2, %r5, -1;\n"
                                "    @%p2 st.global.u32 [%rd1], %r5;\n"
                                "    ret;\n"
                                "}\n";

enum { FLUSH_BLOCKS = 1024, FLUSH_THREADS = 256 };

struct flush {
    cu_module module;
    cu_function function;
    uint64_t data, n_words; /* 16 bytes each */
};

struct timer {
    const tg_driver *driver;
    const tg_sink *sink;
    struct flush flush;
    cu_event *events; /* of every run `marks`: its begin and end, and those between its kernels */
    uint32_t n_events, marks;
};

static tg_status prepare_flush(struct timer *timer, size_t bytes)
{
    const tg_driver *driver = timer->driver;
    struct flush *flush = &timer->flush;
    flush->n_words = bytes / 16;
    if (flush->n_words == 0)
        return TG_OK;
    tg_status status = DRIVER_CALL(driver, timer->sink, cuModuleLoadDataEx, &flush->module, flush_ptx, 0, NULL, NULL);
    if (status == TG_OK)
        status = DRIVER_CALL(driver, timer->sink, cuModuleGetFunction, &flush->function, flush->module, "tegula_flush");
    if (status == TG_OK)
        status = tg_memory_alloc(driver, flush->n_words * 16, &flush->data, timer->sink);
    if (status == TG_OK)
        status = tg_memory_fill(driver, flush->data, 0, flush->n_words * 16, timer->sink);
    return status;
}

static tg_status run_flush(const struct timer *timer)
{
    uint64_t data = timer->flush.data, n_words = timer->flush.n_words;
    void *parameters[] = {&data, &n_words};
    if (n_words == 0)
        return TG_OK;
    return DRIVER_CALL(timer->driver, timer->sink, cuLaunchKernel, timer->flush.function, FLUSH_BLOCKS, 1, 1,
                       FLUSH_THREADS, 1, 1, 0, NULL, parameters, NULL);
}

static tg_status create_events(struct timer *timer, uint32_t n)
{
    timer->events = calloc(n ? n : 1, sizeof *timer->events);
    if (!timer->events)
        return tg_fail(timer->sink, TG_E_MEMORY, "TG0799", NULL, "tg_time: no memory for %" PRIu32 " events", n);
    tg_status status = TG_OK;
    while (timer->n_events < n && status == TG_OK) {
        status = DRIVER_CALL(timer->driver, timer->sink, cuEventCreate, &timer->events[timer->n_events], 0);
        timer->n_events += status == TG_OK;
    }
    return status;
}

static void destroy_timer(struct timer *timer)
{
    for (uint32_t i = 0; i < timer->n_events; i++)
        (void)timer->driver->cuEventDestroy(timer->events[i]);
    free(timer->events);
    tg_memory_free(timer->driver, timer->flush.data);
    if (timer->flush.module)
        (void)timer->driver->cuModuleUnload(timer->flush.module);
}

/* ---- the runs ---- */

struct launch {
    const tg_module *module;
    const tg_sizes *sizes;
    const float *scalars;
    const tg_tensor_arg *args;
    uint32_t n_args;
    uint64_t workspace;
};

static tg_status run_launch(const struct launch *l, const cu_event *events, const tg_sink *sink)
{
    return launch_recorded(l->module, l->sizes, l->scalars, l->args, l->n_args, l->workspace, NULL, events, sink);
}

static tg_status record(const struct timer *timer, cu_event event)
{
    return DRIVER_CALL(timer->driver, timer->sink, cuEventRecord, event, NULL);
}

static tg_status queue_run(const struct timer *timer, const struct launch *launch, uint32_t run, bool by_kernel)
{
    const cu_event *events = timer->events + (size_t)run * timer->marks;
    tg_status status = run_flush(timer);
    if (by_kernel)
        return status == TG_OK ? run_launch(launch, events, timer->sink) : status;
    if (status == TG_OK)
        status = record(timer, events[0]);
    if (status == TG_OK)
        status = run_launch(launch, NULL, timer->sink);
    return status == TG_OK ? record(timer, events[1]) : status;
}

/* times[part][run], where a part lies between two neighbouring events of a run. */
static tg_status read_times(const struct timer *timer, uint32_t runs, float *times)
{
    tg_status status = tg_synchronize(timer->driver, timer->sink);
    for (uint32_t part = 0; part + 1 < timer->marks; part++)
        for (uint32_t i = 0; i < runs && status == TG_OK; i++) {
            const cu_event *begin = timer->events + (size_t)i * timer->marks + part;
            status = DRIVER_CALL(timer->driver, timer->sink, cuEventElapsedTime, &times[(size_t)part * runs + i],
                                 begin[0], begin[1]);
        }
    return status;
}

static int compare_times(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static tg_status time_launch(const struct launch *launch, bool by_kernel, uint32_t warmup, uint32_t runs,
                             size_t flush_bytes, float *times, const tg_sink *sink)
{
    enum { MAX_RUNS = 1 << 20 };
    if (!launch->module || (!times && runs) || runs > MAX_RUNS)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL,
                       "tg_time: expected a module, room for the times and at most %d runs", MAX_RUNS);
    struct timer timer = {.driver = launch->module->driver,
                          .sink = sink,
                          .marks = by_kernel ? launch->module->program->n_kernels + 1 : 2};
    tg_status status = prepare_flush(&timer, flush_bytes);
    if (status == TG_OK)
        status = create_events(&timer, timer.marks * runs);
    for (uint32_t i = 0; i < warmup && status == TG_OK; i++)
        status = run_launch(launch, NULL, sink);
    for (uint32_t i = 0; i < runs && status == TG_OK; i++)
        status = queue_run(&timer, launch, i, by_kernel);
    if (status == TG_OK)
        status = read_times(&timer, runs, times);
    for (uint32_t part = 0; status == TG_OK && runs && part + 1 < timer.marks; part++)
        qsort(times + (size_t)part * runs, runs, sizeof *times, compare_times);
    destroy_timer(&timer);
    return status;
}

tg_status tg_time(const tg_module *module, const tg_sizes *sizes, const float *scalars, const tg_tensor_arg *args,
                  uint32_t n_args, uint64_t workspace, uint32_t warmup, uint32_t runs, size_t flush_bytes, float *times,
                  const tg_sink *sink)
{
    const struct launch launch = {module, sizes, scalars, args, n_args, workspace};
    return time_launch(&launch, false, warmup, runs, flush_bytes, times, sink);
}

tg_status tg_time_kernels(const tg_module *module, const tg_sizes *sizes, const float *scalars,
                          const tg_tensor_arg *args, uint32_t n_args, uint64_t workspace, uint32_t warmup,
                          uint32_t runs, size_t flush_bytes, float *times, const tg_sink *sink)
{
    const struct launch launch = {module, sizes, scalars, args, n_args, workspace};
    return time_launch(&launch, true, warmup, runs, flush_bytes, times, sink);
}
