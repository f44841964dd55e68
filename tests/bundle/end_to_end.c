/* tests/bundle/end_to_end.c - a real kernel through a real driver library.
 *
 *     end_to_end DRIVER recurrence.ptx
 *
 * Loads the recurrence of recurrence.cl, launches it with strides, with and without initial state,
 * with no tokens at all, and compares with the same recurrence in double precision. The driver is
 * libcuda.so.1 or the emulator: nothing here knows which. */
#include "runtime/runtime.h"
#include "tests/bundle/sample.h"
#include "tests/usage.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { W = SAMPLE_WIDTH, B = 2, NH = 3, PITCH = 24, N_TENSORS = 8 };

static void print(void *user, const tg_diag *diag)
{
    (void)user;
    fprintf(stderr, "%s %s\n", diag->code, diag->message);
}

static const tg_sink sink = {print, NULL};

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != TG_OK) {                                                                                         \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #call);                                                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* One tensor on both sides. v and h have rows of PITCH elements, of which the first W are used. */
struct array {
    int64_t row, n; /* elements of a row in memory, and of all of it */
    float *host;
    uint64_t device;
};

struct setting {
    const tg_driver *driver;
    const tg_module *module;
    int64_t tokens;
    struct array arrays[N_TENSORS];
    uint64_t workspace;
};

static float noise(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(int32_t)*seed * 0x1p-31f;
}

static int64_t row_of(int tensor)
{
    return tensor == SAMPLE_F || tensor == SAMPLE_I ? 1 : tensor == SAMPLE_V || tensor == SAMPLE_H ? PITCH : W;
}

static void make_arrays(struct setting *s, const tg_sizes *sizes, const tg_program *program)
{
    uint32_t seed = 1;
    for (int t = 0; t < N_TENSORS; t++) {
        struct array *a = &s->arrays[t];
        a->row = row_of(t);
        a->n = B * NH * a->row * (t == SAMPLE_S || t == SAMPLE_S0 ? W : s->tokens);
        a->host = malloc((size_t)(a->n + 1) * sizeof *a->host);
        for (int64_t i = 0; i < a->n; i++)
            a->host[i] = 2.0f * noise(&seed);
        MUST(tg_memory_alloc(s->driver, (size_t)a->n * sizeof *a->host, &a->device, &sink));
        MUST(tg_memory_in(s->driver, a->device, a->host, (size_t)a->n * sizeof *a->host, &sink));
    }
    MUST(tg_memory_alloc(s->driver, tg_workspace_bytes(program, sizes), &s->workspace, &sink));
}

static void free_arrays(struct setting *s)
{
    for (int t = 0; t < N_TENSORS; t++) {
        free(s->arrays[t].host);
        tg_memory_free(s->driver, s->arrays[t].device);
    }
    tg_memory_free(s->driver, s->workspace);
}

static float *at(const struct setting *s, int tensor, int64_t sequence, int64_t row)
{
    const struct array *a = &s->arrays[tensor];
    int64_t rows = tensor == SAMPLE_S || tensor == SAMPLE_S0 ? W : s->tokens;
    return a->host + (sequence * rows + row) * a->row;
}

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* Largest difference of h and S of one sequence from the recurrence. */
static double compare(const struct setting *s, int64_t sequence, bool has_state, double scale)
{
    double state[W][W], worst = 0.0;
    for (int r = 0; r < W; r++)
        for (int c = 0; c < W; c++)
            state[r][c] = has_state ? (double)at(s, SAMPLE_S0, sequence, r)[c] : 0.0;
    for (int64_t t = 0; t < s->tokens; t++) {
        double keep = sigmoid((double)*at(s, SAMPLE_F, sequence, t)),
               take = sigmoid((double)*at(s, SAMPLE_I, sequence, t));
        for (int c = 0; c < W; c++) {
            double h = 0.0;
            for (int r = 0; r < W; r++) {
                state[r][c] = keep * state[r][c] +
                              take * (double)at(s, SAMPLE_K, sequence, t)[r] * (double)at(s, SAMPLE_V, sequence, t)[c];
                h += state[r][c] * (double)at(s, SAMPLE_Q, sequence, t)[r];
            }
            worst = fmax(worst, fabs(scale * h - (double)at(s, SAMPLE_H, sequence, t)[c]));
        }
    }
    for (int r = 0; r < W; r++)
        for (int c = 0; c < W; c++)
            worst = fmax(worst, fabs(state[r][c] - (double)at(s, SAMPLE_S, sequence, r)[c]));
    return worst;
}

static void fill_args(const struct setting *s, tg_tensor_arg *args, bool has_state)
{
    for (int t = 0; t < N_TENSORS; t++) {
        args[t] = (tg_tensor_arg){.name = sample_tensors[t].name, .address = s->arrays[t].device};
        if (row_of(t) == PITCH) {
            int64_t stride[] = {NH * s->tokens * PITCH, s->tokens * PITCH, PITCH, 1};
            memcpy(args[t].stride, stride, sizeof stride);
        }
    }
    args[SAMPLE_S0].address = has_state ? args[SAMPLE_S0].address : 0;
}

static bool run(const tg_driver *driver, const tg_module *module, const tg_program *program, int64_t tokens,
                bool has_state)
{
    const float scale = 0.25f;
    tg_sizes sizes = {B, NH, tokens, 0};
    struct setting s = {.driver = driver, .module = module, .tokens = tokens};
    tg_tensor_arg args[N_TENSORS];
    double worst = 0.0;
    make_arrays(&s, &sizes, program);
    fill_args(&s, args, has_state);
    MUST(tg_launch(module, &sizes, &scale, args, N_TENSORS, s.workspace, NULL, &sink));
    MUST(tg_synchronize(driver, &sink));
    for (int t = SAMPLE_H; t <= SAMPLE_S; t++)
        MUST(tg_memory_out(driver, s.arrays[t].host, s.arrays[t].device, (size_t)s.arrays[t].n * sizeof(float), &sink));
    for (int64_t sequence = 0; sequence < B * NH; sequence++)
        worst = fmax(worst, compare(&s, sequence, has_state, (double)scale));
    float times[3] = {0};
    if (tokens > 0)
        MUST(tg_time(module, &sizes, &scale, args, N_TENSORS, s.workspace, 1, 3, 1 << 16, times, &sink));
    printf("T %3lld, %s initial state: largest error %.2e, %.3f ms\n", (long long)tokens, has_state ? "with" : "no",
           worst, (double)times[0]);
    free_arrays(&s);
    return worst < 1e-4;
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!file || !text || fread(text, 1, (1 << 20) - 1, file) == 0) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    fclose(file);
    return text;
}

int main(int argc, char **argv)
{
    if (!usage_is(argc, argv, 2, 2, "DRIVER recurrence.ptx"))
        return 2;
    tg_driver *driver;
    tg_device device;
    tg_module *module;
    char *ptx = read_text(argv[2]);
    tg_program program = sample_program(ptx);
    MUST(tg_driver_open(argv[1], &driver, &sink));
    MUST(tg_device_query(driver, 0, &device, &sink));
    printf("%s, sm_%d%d, driver %d\n", device.name, device.cc_major, device.cc_minor, device.driver_version);
    MUST(tg_context_acquire(driver, 0, &sink));
    MUST(tg_load(driver, &program, &module, &sink));
    const int64_t lengths[] = {1, 65, 0};
    bool ok = true;
    for (int i = 0; i < 6; i++)
        ok = run(driver, module, &program, lengths[i / 2], i % 2) && ok;
    tg_unload(module);
    tg_context_release(driver, 0);
    tg_driver_close(driver);
    free(ptx);
    return !ok;
}
