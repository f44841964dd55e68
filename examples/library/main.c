/* examples/library/main.c - a program that compiles at run time, for the GPU it finds: libtegula makes the kernels,
 * libtegula-rt runs them. Linear attention without decay,
 *
 *     S_t = S_{t-1} + k_t v_t^T      h_t = scale S_t^T q_t
 *
 * compared with the recurrence in double precision.
 *
 *     cc -std=c11 examples/library/main.c $(pkg-config --cflags --libs tegula tegula-rt) -lm -o library
 *     ./library libcuda.so.1
 *
 * or the path of the emulator's library. */
#include <tegula/compiler/compiler.h>
#include <tegula/runtime/runtime.h>
#include <tegula/variants/variants.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { T = 70, DQK = 32, DHV = 64 };

struct array {
    float host[T * DHV]; /* q and k: [T, DQK] of it */
    uint64_t device;
};
enum { Q, K, V, H, N_ARRAYS };

static void say(void *user, const tg_diag *diag)
{
    (void)user;
    fprintf(stderr, "%s %s\n", diag->code, diag->message);
}
static const tg_sink sink = {.emit = say};

static tg_status compile(const tg_driver *driver, tg_program **program)
{
    const tg_variant *variant = tg_variant_find("linear");
    const tg_shape_class shape = {.io = TG_F32, .dqk = DQK, .dhv = DHV};
    const tg_sizes sizes = {.batch = 1, .heads = 1, .tokens = T};
    tg_device device = {.struct_size = sizeof device};
    tg_schedule schedule;
    tg_status status = tg_device_query(driver, 0, &device, &sink);
    const tg_target *target = tg_target_for_gpu(10 * device.cc_major + device.cc_minor, device.name, device.sms,
                                                device.memory_clock_khz, device.memory_bus_bits);
    if (status == TG_OK && !target)
        status = TG_E_UNSUPPORTED;
    if (status == TG_OK)
        status = tg_schedule_default(variant, target, &shape, &sizes, &schedule, &sink);
    if (status == TG_OK)
        status = tg_compile(variant, &schedule, target, &shape, NULL, program, &sink);
    if (status == TG_OK)
        printf("%s for %s: schedule %s, %u kernels\n", variant->name, device.name, (*program)->schedule,
               (*program)->n_kernels);
    return status;
}

static tg_status launch(const tg_driver *driver, const tg_module *module, const struct array *arrays)
{
    static const char *const names[N_ARRAYS] = {"q", "k", "v", "h"};
    const tg_sizes sizes = {.batch = 1, .heads = 1, .tokens = T};
    tg_tensor_arg args[N_ARRAYS];
    for (int i = 0; i < N_ARRAYS; i++)
        args[i] = (tg_tensor_arg){.name = names[i], .address = arrays[i].device}; /* contiguous */
    uint64_t workspace = 0;
    const uint64_t bytes = tg_workspace_bytes(tg_module_program(module), &sizes);
    tg_status status = bytes ? tg_memory_alloc(driver, bytes, &workspace, &sink) : TG_OK;
    if (status == TG_OK)
        status = tg_launch(module, &sizes, NULL, args, N_ARRAYS, workspace, NULL, &sink);
    if (status == TG_OK)
        status = tg_synchronize(driver, &sink);
    if (workspace)
        tg_memory_free(driver, workspace);
    return status;
}

static double error_of(const struct array *arrays)
{
    static double state[DQK][DHV];
    const double scale = 1 / sqrt(DQK);
    double off = 0, all = 0;
    for (int t = 0; t < T; t++)
        for (int c = 0; c < DHV; c++) {
            double h = 0;
            for (int r = 0; r < DQK; r++) {
                state[r][c] += (double)arrays[K].host[t * DQK + r] * (double)arrays[V].host[t * DHV + c];
                h += scale * (double)arrays[Q].host[t * DQK + r] * state[r][c];
            }
            off += pow((double)arrays[H].host[t * DHV + c] - h, 2);
            all += h * h;
        }
    return sqrt(off / all);
}

static tg_status run(const tg_driver *driver, const tg_module *module, double *error)
{
    static struct array arrays[N_ARRAYS];
    const size_t bytes = sizeof arrays[0].host;
    tg_status status = TG_OK;
    for (int i = 0; i < N_ARRAYS && status == TG_OK; i++) {
        for (int k = 0; k < T * DHV; k++)
            arrays[i].host[k] = (float)rand() / (float)RAND_MAX - 0.5f;
        status = tg_memory_alloc(driver, bytes, &arrays[i].device, &sink);
        if (status == TG_OK)
            status = tg_memory_in(driver, arrays[i].device, arrays[i].host, bytes, &sink);
    }
    if (status == TG_OK)
        status = launch(driver, module, arrays);
    if (status == TG_OK)
        status = tg_memory_out(driver, arrays[H].host, arrays[H].device, bytes, &sink);
    *error = status == TG_OK ? error_of(arrays) : NAN;
    for (int i = 0; i < N_ARRAYS; i++)
        if (arrays[i].device)
            tg_memory_free(driver, arrays[i].device);
    return status;
}

int main(int argc, char **argv)
{
    tg_driver *driver = NULL;
    tg_program *program = NULL;
    tg_module *module = NULL;
    double error = NAN;
    if (tg_driver_open(argc > 1 ? argv[1] : NULL, &driver, &sink) != TG_OK)
        return 1;
    tg_status status = tg_context_acquire(driver, 0, &sink);
    if (status == TG_OK) {
        status = compile(driver, &program);
        if (status == TG_OK)
            status = tg_load(driver, program, &module, &sink);
        if (status == TG_OK)
            status = run(driver, module, &error);
        tg_unload(module);
        tg_program_free(program);
        tg_context_release(driver, 0);
    }
    tg_driver_close(driver);
    printf("relative RMS error of h: %.1e\n", error);
    return error <= 2e-5 ? 0 : 1; /* NaN is not */
}
