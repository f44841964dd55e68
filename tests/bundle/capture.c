/* tests/bundle/capture.c - a launch inside a CUDA graph, on a real driver.
 *
 *     capture libcuda.so.1 recurrence.ptx
 *
 * The very first launch of a module is captured (a kernel loaded lazily would break the capture),
 * the graph runs twice on changed inputs, and each time h must equal what a plain launch gives, bit
 * by bit. A call without tokens is captured too. */
#include "runtime/runtime.h"
#include "tests/bundle/sample.h"
#include "tests/usage.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { W = SAMPLE_WIDTH, T = 40, N_TENSORS = 8, N = T * W };

static struct {
    int (*cuStreamCreate)(void **stream, unsigned int flags);
    int (*cuStreamBeginCapture)(void *stream, int mode);
    int (*cuStreamEndCapture)(void *stream, void **graph);
    int (*cuGraphInstantiateWithFlags)(void **instance, void *graph, unsigned long long flags);
    int (*cuGraphLaunch)(void *instance, void *stream);
    int (*cuStreamSynchronize)(void *stream);
} cuda;

static void print(void *user, const tg_diag *diag)
{
    (void)user;
    fprintf(stderr, "%s %s\n", diag->code, diag->message);
}

static const tg_sink sink = {print, NULL};

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        int result_of_call = (int)(call);                                                                              \
        if (result_of_call != 0) {                                                                                     \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, result_of_call);                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void find(void *library, const char *symbol, void *field)
{
    void *address = dlsym(library, symbol);
    MUST(address == NULL);
    memcpy(field, &address, sizeof address);
}

static void find_all(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    MUST(library == NULL);
    find(library, "cuStreamCreate", &cuda.cuStreamCreate);
    find(library, "cuStreamBeginCapture_v2", &cuda.cuStreamBeginCapture);
    find(library, "cuStreamEndCapture", &cuda.cuStreamEndCapture);
    find(library, "cuGraphInstantiateWithFlags", &cuda.cuGraphInstantiateWithFlags);
    find(library, "cuGraphLaunch", &cuda.cuGraphLaunch);
    find(library, "cuStreamSynchronize", &cuda.cuStreamSynchronize);
}

static void *capture(const tg_module *module, const tg_sizes *sizes, const tg_tensor_arg *args, uint64_t workspace,
                     void *stream)
{
    void *graph, *instance;
    MUST(cuda.cuStreamBeginCapture(stream, 0)); /* global: any unsafe call anywhere ends it */
    MUST(tg_launch(module, sizes, NULL, args, N_TENSORS, workspace, stream, &sink));
    MUST(cuda.cuStreamEndCapture(stream, &graph));
    MUST(cuda.cuGraphInstantiateWithFlags(&instance, graph, 0));
    return instance;
}

static void fill(const tg_driver *driver, const tg_tensor_arg *args, unsigned int seed)
{
    static float data[N];
    srand(seed);
    for (int t = 0; t < SAMPLE_H; t++) {
        for (int i = 0; i < N; i++)
            data[i] = (float)rand() / (float)RAND_MAX - 0.5f;
        MUST(tg_memory_in(driver, args[t].address, data, sizeof data, &sink));
    }
}

static void fetch(const tg_driver *driver, const tg_tensor_arg *arg, float *to)
{
    MUST(tg_synchronize(driver, &sink));
    MUST(tg_memory_out(driver, to, arg->address, N * sizeof *to, &sink));
}

int main(int argc, char **argv)
{
    static char ptx[1 << 20];
    static float captured[N], plain[N];
    if (!usage_is(argc, argv, 2, 2, "DRIVER recurrence.ptx"))
        return 2;
    FILE *file = fopen(argv[2], "rb");
    MUST(!file || fread(ptx, 1, sizeof ptx - 1, file) == 0);
    fclose(file);
    tg_driver *driver;
    tg_module *module;
    void *stream;
    uint64_t workspace;
    tg_program program = sample_program(ptx);
    tg_sizes sizes = {1, 1, T, 0}, none = {1, 1, 0, 0};
    tg_tensor_arg args[N_TENSORS] = {{0}};
    find_all(argv[1]);
    MUST(tg_driver_open(argv[1], &driver, &sink));
    MUST(tg_context_acquire(driver, 0, &sink));
    MUST(tg_load(driver, &program, &module, &sink));
    MUST(cuda.cuStreamCreate(&stream, 1)); /* does not wait for the default stream */
    for (int t = 0; t < N_TENSORS; t++) {
        args[t].name = sample_tensors[t].name;
        MUST(tg_memory_alloc(driver, N * sizeof(float), &args[t].address, &sink));
    }
    MUST(tg_memory_alloc(driver, tg_workspace_bytes(&program, &sizes), &workspace, &sink));
    void *graph = capture(module, &sizes, args, workspace, stream);
    void *empty = capture(module, &none, args, workspace, stream);
    for (unsigned int seed = 1; seed <= 2; seed++) {
        fill(driver, args, seed);
        MUST(cuda.cuGraphLaunch(graph, stream));
        fetch(driver, &args[SAMPLE_H], captured);
        MUST(tg_memory_fill(driver, args[SAMPLE_H].address, 0xff, sizeof plain, &sink));
        MUST(tg_launch(module, &sizes, NULL, args, N_TENSORS, workspace, stream, &sink));
        fetch(driver, &args[SAMPLE_H], plain);
        MUST(memcmp(captured, plain, sizeof plain));
    }
    MUST(cuda.cuGraphLaunch(empty, stream));
    fetch(driver, &args[SAMPLE_S], captured);
    MUST(tg_memory_out(driver, plain, args[SAMPLE_S0].address, sizeof plain, &sink));
    MUST(memcmp(captured, plain, W * W * sizeof *plain));
    puts("captured launches equal plain ones");
    return 0;
}
