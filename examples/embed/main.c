/* examples/embed/main.c - README: `embed libcuda.so.1` (or the emulator's library) runs one forward
 * pass of the generated kernels mlstm_sig.{c,h} on small random data and compares it with
 *
 *     C_t = sigmoid(f_t) C_{t-1} + sigmoid(i_t) k_t v_t^T,     h_t = scale * C_t^T q_t
 *
 * in double precision. It shows all an engine has to do: open the driver, load, ask for the
 * workspace, launch. The engine's own part (context, memory, copies) is done with eight more driver
 * functions. */
#include "mlstm_sig.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { B = 2, NH = 2, T = 150, DQK = MLSTM_SIG_DQK, DHV = MLSTM_SIG_DHV, SEQUENCES = B * NH };

/* ---- the engine's own use of the driver ---- */

static struct {
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuDevicePrimaryCtxRelease)(int device);
    int (*cuCtxSetCurrent)(void *context);
    int (*cuCtxSynchronize)(void);
    int (*cuMemAlloc)(uint64_t *address, size_t bytes);
    int (*cuMemFree)(uint64_t address);
    int (*cuMemcpyHtoD)(uint64_t to, const void *from, size_t bytes);
    int (*cuMemcpyDtoH)(void *to, uint64_t from, size_t bytes);
} engine;

static tegula_driver driver; /* one table for all generated programs of an application */

static void must(int result, const char *what)
{
    if (result == MLSTM_SIG_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, mlstm_sig_error(&driver, result));
    exit(1);
}

static void find(const char *symbol, void *field)
{
    void *address = dlsym(driver.library, symbol);
    must(address ? MLSTM_SIG_OK : MLSTM_SIG_E_DRIVER, symbol);
    memcpy(field, &address, sizeof address);
}

static void open_driver(const char *path)
{
    void *context;
    must(mlstm_sig_driver_open(&driver, path), path);
    find("cuDevicePrimaryCtxRetain", &engine.cuDevicePrimaryCtxRetain);
    find("cuDevicePrimaryCtxRelease_v2", &engine.cuDevicePrimaryCtxRelease);
    find("cuCtxSetCurrent", &engine.cuCtxSetCurrent);
    find("cuCtxSynchronize", &engine.cuCtxSynchronize);
    find("cuMemAlloc_v2", &engine.cuMemAlloc);
    find("cuMemFree_v2", &engine.cuMemFree);
    find("cuMemcpyHtoD_v2", &engine.cuMemcpyHtoD);
    find("cuMemcpyDtoH_v2", &engine.cuMemcpyDtoH);
    must(engine.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(engine.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

static void close_driver(void)
{
    must(engine.cuDevicePrimaryCtxRelease(0), "cuDevicePrimaryCtxRelease");
    mlstm_sig_driver_close(&driver);
}

/* ---- numbers of the kernels' types ---- */

static size_t type_bytes(int type)
{
    return type == MLSTM_SIG_F32 ? 4 : 2;
}

static uint16_t to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16); /* to nearest, ties to even */
}

static float from_bf16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Values of the test lie well inside the range of f16; tiny ones become 0. */
static uint16_t to_f16(float value)
{
    int exponent;
    float fraction = frexpf(fabsf(value), &exponent); /* in [0.5, 1) */
    uint32_t sign = signbit(value) ? 0x8000 : 0;
    if (value == 0.0f || exponent < -13)
        return (uint16_t)sign;
    return (uint16_t)(sign + ((uint32_t)(exponent + 13) << 10) + (uint32_t)lrintf(fraction * 2048.0f));
}

static float from_f16(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 1023;
    float value = exponent ? ldexpf((float)(fraction + 1024), exponent - 25) : ldexpf((float)fraction, -24);
    return half & 0x8000 ? -value : value;
}

static void store(void *array, size_t i, int type, float value)
{
    if (type == MLSTM_SIG_F32)
        ((float *)array)[i] = value;
    else
        ((uint16_t *)array)[i] = type == MLSTM_SIG_BF16 ? to_bf16(value) : to_f16(value);
}

static float load(const void *array, size_t i, int type)
{
    if (type == MLSTM_SIG_F32)
        return ((const float *)array)[i];
    uint16_t half = ((const uint16_t *)array)[i];
    return type == MLSTM_SIG_BF16 ? from_bf16(half) : from_f16(half);
}

/* ---- arrays on both sides ---- */

struct array {
    int type;
    size_t n;
    void *host;
    tegula_tensor device; /* strides stay zero: contiguous */
};

static struct array make_array(int type, size_t n, float size)
{
    struct array a = {type, n, calloc(n, type_bytes(type)), {0}};
    must(engine.cuMemAlloc(&a.device.address, n * type_bytes(type)), "cuMemAlloc");
    for (size_t i = 0; i < n; i++)
        store(a.host, i, type, size * ((float)rand() / (float)RAND_MAX * 2.0f - 1.0f));
    must(engine.cuMemcpyHtoD(a.device.address, a.host, n * type_bytes(type)), "cuMemcpyHtoD");
    return a;
}

static void free_array(struct array *a)
{
    must(engine.cuMemFree(a->device.address), "cuMemFree");
    free(a->host);
}

static void fetch(struct array *a)
{
    must(engine.cuMemcpyDtoH(a->host, a->device.address, a->n * type_bytes(a->type)), "cuMemcpyDtoH");
}

static double value(const struct array *a, size_t i)
{
    return (double)load(a->host, i, a->type);
}

/* ---- the recurrence ---- */

struct arrays {
    struct array q, k, v, f, i, S0, h, S;
};

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* Sums of squares, of the difference and of the reference. */
struct error {
    double difference, reference;
};

static void add_error(struct error *e, double found, double expected)
{
    e->difference += (found - expected) * (found - expected);
    e->reference += expected * expected;
}

static void compare(const struct arrays *a, size_t sequence, double scale, struct error *h_error, struct error *S_error)
{
    static double C[DQK][DHV];
    const size_t states = sequence * DQK * DHV;
    for (size_t r = 0; r < DQK; r++)
        for (size_t c = 0; c < DHV; c++)
            C[r][c] = value(&a->S0, states + r * DHV + c);
    for (size_t t = sequence * T; t < (sequence + 1) * T; t++) {
        double keep = sigmoid(value(&a->f, t)), take = sigmoid(value(&a->i, t)), h[DHV] = {0};
        for (size_t r = 0; r < DQK; r++) {
            double k = take * value(&a->k, t * DQK + r), q = scale * value(&a->q, t * DQK + r);
            for (size_t c = 0; c < DHV; c++) {
                C[r][c] = keep * C[r][c] + k * value(&a->v, t * DHV + c);
                h[c] += q * C[r][c];
            }
        }
        for (size_t c = 0; c < DHV; c++)
            add_error(h_error, value(&a->h, t * DHV + c), h[c]);
    }
    for (size_t r = 0; r < DQK; r++)
        for (size_t c = 0; c < DHV; c++)
            add_error(S_error, value(&a->S, states + r * DHV + c), C[r][c]);
}

/* ---- the forward pass ---- */

static struct arrays make_arrays(void)
{
    const size_t tokens = (size_t)SEQUENCES * T, states = (size_t)SEQUENCES * DQK * DHV;
    struct arrays a = {
        .q = make_array(MLSTM_SIG_TYPE_q, tokens * DQK, 1.0f),
        .k = make_array(MLSTM_SIG_TYPE_k, tokens * DQK, 1.0f),
        .v = make_array(MLSTM_SIG_TYPE_v, tokens * DHV, 1.0f),
        .f = make_array(MLSTM_SIG_TYPE_f, tokens, 5.0f),
        .i = make_array(MLSTM_SIG_TYPE_i, tokens, 5.0f),
        .S0 = make_array(MLSTM_SIG_TYPE_S0, states, 1.0f),
        .h = make_array(MLSTM_SIG_TYPE_h, tokens * DHV, 0.0f),
        .S = make_array(MLSTM_SIG_TYPE_S, states, 0.0f),
    };
    return a;
}

static void free_arrays(struct arrays *a)
{
    struct array *all[] = {&a->q, &a->k, &a->v, &a->f, &a->i, &a->S0, &a->h, &a->S};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free_array(all[i]);
}

static void forward(const struct arrays *a, float scale)
{
    const mlstm_sig_tensors tensors = {
        .q = a->q.device,
        .k = a->k.device,
        .v = a->v.device,
        .f = a->f.device,
        .i = a->i.device,
        .S0 = a->S0.device,
        .h = a->h.device,
        .S = a->S.device,
    };
    const mlstm_sig_sizes sizes = {.batch = B, .heads = NH, .tokens = T};
    mlstm_sig_module module;
    uint64_t workspace = 0, bytes = mlstm_sig_workspace_bytes(&sizes);
    if (bytes)
        must(engine.cuMemAlloc(&workspace, bytes), "cuMemAlloc");
    must(mlstm_sig_load(&module, &driver), "mlstm_sig_load");
    char why[1000]; /* while you write such a program: which argument is wrong, and how */
    if (mlstm_sig_check(&module, &sizes, &tensors, workspace, why, sizeof why) != MLSTM_SIG_OK)
        fputs(why, stderr);
    must(mlstm_sig_launch(&module, &sizes, scale, &tensors, workspace, NULL), "mlstm_sig_launch");
    must(engine.cuCtxSynchronize(), "cuCtxSynchronize");
    mlstm_sig_unload(&module);
    if (bytes)
        must(engine.cuMemFree(workspace), "cuMemFree");
}

int main(int argc, char **argv)
{
    const float scale = 1.0f / sqrtf((float)DQK);
    struct error h = {0}, S = {0};
    open_driver(argc > 1 ? argv[1] : "libcuda.so.1");
    struct arrays a = make_arrays();
    forward(&a, scale);
    fetch(&a.h);
    fetch(&a.S);
    for (size_t sequence = 0; sequence < SEQUENCES; sequence++)
        compare(&a, sequence, (double)scale, &h, &S);
    double h_error = sqrt(h.difference / h.reference), S_error = sqrt(S.difference / S.reference);
    double tolerance = type_bytes(MLSTM_SIG_TYPE_q) == 4 ? 1e-4 : 8e-3;
    printf("B %d NH %d T %d dqk %d dhv %d: relative RMS error of h %.2e, of S %.2e, tolerance %.0e\n", B, NH, T, DQK,
           DHV, h_error, S_error, tolerance);
    free_arrays(&a);
    close_driver();
    return h_error <= tolerance && S_error <= tolerance ? 0 : 1; /* NaN fails too */
}
