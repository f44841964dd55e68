/* bench/replay.c - a decode step of a variant, captured in a CUDA graph and replayed: microseconds a replay, median.
 *
 *     tegula compile gated-delta --arch sm_90a --dqk 128 --dhv 128 --tokens 8 --schedule step8-narrow --name step -o out
 *     cc -std=gnu11 -Iout -I$CUDA/include bench/replay.c out/step.c -ldl -lcuda -o replay
 *     ./replay B NH T
 *
 * -D'GATES=...' says what the variant has beside q, k, v, h and its states; mlstm-sig: .f = TENSOR(4 * rows), .i = TENSOR(4 * rows).
 * Both the time between events around one replay, and that of 100 replays one behind the other, by replay; and what a call
 * of step_launch takes of the host's time, the driver's included. */
#include "step.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        const int result = (int)(call);                                                                                \
        if (result) {                                                                                                  \
            fprintf(stderr, "%s: %d\n", #call, result);                                                                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define TENSOR(bytes) {zeros(bytes), {0}}
#ifndef GATES
#define GATES .beta = TENSOR(4 * rows), .a = TENSOR(4 * rows)
#endif

enum { RUNS = 101, TOGETHER = 100 };

static uint64_t zeros(size_t bytes)
{
    CUdeviceptr address;
    MUST(cuMemAlloc(&address, bytes));
    MUST(cuMemsetD8(address, 0, bytes));
    return address;
}

static int compare(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static float replay(CUgraphExec graph, CUstream stream, int n)
{
    float times[RUNS];
    CUevent begin, end;
    MUST(cuEventCreate(&begin, 0));
    MUST(cuEventCreate(&end, 0));
    for (int run = 0; run < RUNS; run++) {
        MUST(cuEventRecord(begin, stream));
        for (int i = 0; i < n; i++)
            MUST(cuGraphLaunch(graph, stream));
        MUST(cuEventRecord(end, stream));
        MUST(cuStreamSynchronize(stream));
        MUST(cuEventElapsedTime(&times[run], begin, end));
    }
    qsort(times, RUNS, sizeof *times, compare);
    return 1e3f * times[RUNS / 2] / (float)n;
}

/* Of calls that the queue has room for. */
static float launch(const step_module *module, const step_sizes *sizes, const step_tensors *tensors, uint64_t workspace,
                    CUstream stream)
{
    float times[RUNS];
    for (int run = 0; run < RUNS; run++) {
        struct timespec begin, end;
        MUST(cuStreamSynchronize(stream));
        (void)clock_gettime(CLOCK_MONOTONIC, &begin);
        for (int i = 0; i < TOGETHER; i++)
            MUST(step_launch(module, sizes, STEP_DEFAULT_scale, tensors, workspace, stream));
        (void)clock_gettime(CLOCK_MONOTONIC, &end);
        times[run] = 1e6f * (float)(end.tv_sec - begin.tv_sec) + 1e-3f * (float)(end.tv_nsec - begin.tv_nsec);
    }
    qsort(times, RUNS, sizeof *times, compare);
    return times[RUNS / 2] / TOGETHER;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const step_sizes sizes = {atoll(argv[1]), atoll(argv[2]), atoll(argv[3]), 0};
    const size_t rows = (size_t)(sizes.batch * sizes.heads * sizes.tokens), heads = (size_t)(sizes.batch * sizes.heads);
    step_driver driver;
    step_module module;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    CUgraph captured;
    CUgraphExec graph;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(step_driver_open(&driver, NULL));
    MUST(step_load(&module, &driver));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    const uint64_t state = zeros(4 * heads * STEP_DQK * STEP_DHV);
    const step_tensors tensors = {
        .q = TENSOR(2 * rows * STEP_DQK), .k = TENSOR(2 * rows * STEP_DQK), .v = TENSOR(2 * rows * STEP_DHV),
        .h = TENSOR(2 * rows * STEP_DHV), .S0 = {state, {0}},               .S = {state, {0}},
        GATES,
    };
    const uint64_t workspace = zeros(step_workspace_bytes(&sizes) + 256);
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(step_launch(&module, &sizes, STEP_DEFAULT_scale, &tensors, workspace, stream));
    MUST(cuStreamEndCapture(stream, &captured));
    MUST(cuGraphInstantiate(&graph, captured, 0));
    printf("{\"B\":%lld,\"NH\":%lld,\"T\":%lld,\"replay_us\":%.2f,\"of_100_us\":%.2f,\"launch_us\":%.2f}\n", (long long)sizes.batch,
           (long long)sizes.heads, (long long)sizes.tokens, (double)replay(graph, stream, 1),
           (double)replay(graph, stream, TOGETHER),
           (double)launch(&module, &sizes, &tensors, workspace, stream));
    return 0;
}
