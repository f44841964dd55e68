/* tests/bundle/maps.c - tensor maps, a cluster and overlap through a real driver library.
 *
 *     maps DRIVER maps.ptx
 *
 * Boxes of q, which is strided and shared by two heads, go through shared memory to h, and a second
 * kernel, started before the first has ended, copies h. The host knows where every byte must be: in
 * shared memory, for every swizzle and span, with zeros behind the last token; in h, with nothing
 * written behind it. The driver is libcuda.so.1 or the emulator; what the latter cannot do is asked
 * of the former only: all of it again in a graph. */
#include "emulator/tegula_emu.h"
#include "runtime/runtime.h"
#include "tests/usage.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { B = 2, NH = 4, GROUP = 2, W = 128, ROWS = 64, MAX_T = 130, GUARD = 4096 };
enum { BOX_BYTES = ROWS * W * 2, RAW_BYTES = 65536, MAX_TILES = (MAX_T + ROWS - 1) / ROWS };
enum { Q, H, COPY, RAW, N_TENSORS };

/* Every block says how many there are in its cluster, behind its box in raw. */
static const char cluster_ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                                  ".visible .entry maps_cluster(.param .u64 raw)\n{\n"
                                  "    .reg .b32 %r<3>;\n    .reg .b64 %rd<3>;\n"
                                  "    ld.param.u64 %rd1, [raw];\n    cvta.to.global.u64 %rd1, %rd1;\n"
                                  "    mov.u32 %r1, %ctaid.x;\n    mul.wide.u32 %rd2, %r1, 65536;\n"
                                  "    add.s64 %rd1, %rd1, %rd2;\n    mov.u32 %r2, %cluster_nctaid.x;\n"
                                  "    griddepcontrol.wait;\n    st.global.u32 [%rd1 + 16384], %r2;\n    ret;\n}\n";
enum { CLUSTER = 4 };

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

static const tg_tensor_info tensors[] = {
    {.name = "q", .dtype = TG_BF16, .flags = TG_IN | TG_SHARED, .axes = {TG_T, TG_DQK}},
    {.name = "h", .dtype = TG_BF16, .flags = TG_OUT, .axes = {TG_T, TG_DHV}},
    {.name = "copy", .dtype = TG_BF16, .flags = TG_OUT, .axes = {TG_T, TG_DHV}},
    {.name = "raw", .dtype = TG_F32, .flags = TG_OUT, .axes = {TG_CHUNK, TG_DQK, TG_DHV}},
};

static tg_program make_program(const char *ptx, const tg_map_desc *recipe)
{
    static const tg_arg_desc copy_args[] = {{.kind = TG_ARG_MAP, .index = Q, .axis = 0},
                                            {.kind = TG_ARG_MAP, .index = H, .axis = 1},
                                            {.kind = TG_ARG_POINTER, .index = RAW},
                                            {.kind = TG_ARG_SIZE, .index = TG_SIZE_TOKENS},
                                            {.kind = TG_ARG_SIZE, .index = TG_SIZE_HEADS}};
    static const tg_arg_desc after_args[] = {{.kind = TG_ARG_POINTER, .index = H},
                                             {.kind = TG_ARG_POINTER, .index = COPY},
                                             {.kind = TG_ARG_SIZE, .index = TG_SIZE_TOKENS}};
    tg_program p = {
        .struct_size = sizeof p,
        .version = TG_PROGRAM_VERSION,
        .variant = "maps",
        .schedule = "copy",
        .arch = "sm_90",
        .io_dtype = TG_BF16,
        .group = GROUP,
        .dqk = W,
        .dhv = W,
        .chunk_multiple = ROWS,
        .chunk_default = ROWS,
        .n_tensors = N_TENSORS,
        .n_scalars = 1,
        .scalars = {{"scale", 1.0f}},
        .n_kernels = 3,
        .kernels = {{.name = "maps_copy",
                     .ptx = ptx,
                     .ptx_bytes = strlen(ptx),
                     .threads = 128,
                     .shared_bytes = BOX_BYTES + 8,
                     .n_grid = 3,
                     .grid = {{TG_SIZE_BATCH, 1, 1}, {TG_SIZE_HEADS, 1, 1}, {TG_SIZE_CHUNKS, 1, 1}},
                     .n_args = sizeof copy_args / sizeof *copy_args,
                     .n_maps = 2,
                     .maps = {*recipe, *recipe}},
                    {.name = "maps_after",
                     .ptx = ptx,
                     .ptx_bytes = strlen(ptx),
                     .threads = 128,
                     .n_grid = 2,
                     .grid = {{TG_SIZE_BATCH, 1, 1}, {TG_SIZE_HEADS, 1, 1}},
                     .n_args = sizeof after_args / sizeof *after_args,
                     .overlap = 1},
                    {.name = "maps_cluster",
                     .ptx = cluster_ptx,
                     .ptx_bytes = strlen(cluster_ptx),
                     .threads = 32,
                     .n_grid = 3,
                     .grid = {{TG_SIZE_BATCH, 1, 1}, {TG_SIZE_HEADS, 1, 1}, {TG_SIZE_CHUNKS, 1, 1}},
                     .n_args = 1,
                     .args = {{.kind = TG_ARG_POINTER, .index = RAW}},
                     .cluster = CLUSTER,
                     .overlap = 1}},
    };
    memcpy(p.tensors, tensors, sizeof tensors);
    memcpy(p.kernels[0].args, copy_args, sizeof copy_args);
    memcpy(p.kernels[1].args, after_args, sizeof after_args);
    p.kernels[0].maps[0].tensor = Q;
    p.kernels[0].maps[1].tensor = H;
    return p;
}

/* ---- memory ---- */

/* q lies as [B, T, 3, W], of which the last of the 3 belongs to nobody. */
enum { Q_ELEMENTS = B * MAX_T * 3 * W, H_ELEMENTS = B * NH * MAX_T * W };
static uint16_t q[Q_ELEMENTS], h[H_ELEMENTS + GUARD], copy[H_ELEMENTS + GUARD];
static uint8_t raw[B * NH * MAX_TILES * RAW_BYTES];
static const size_t sizes_of[] = {sizeof q, sizeof h, sizeof copy, sizeof raw};

static uint16_t element(int64_t tokens, int64_t b, int64_t head, int64_t t, int64_t column)
{
    return q[((b * tokens + t) * 3 + head / GROUP) * W + column];
}

static void clear_outputs(const tg_driver *driver, const tg_tensor_arg *args)
{
    for (int i = H; i < N_TENSORS; i++)
        MUST(tg_memory_fill(driver, args[i].address, 0x55, sizes_of[i], &sink));
}

static void fetch_outputs(const tg_driver *driver, const tg_tensor_arg *args)
{
    void *to[] = {q, h, copy, raw};
    MUST(tg_synchronize(driver, &sink));
    for (int i = H; i < N_TENSORS; i++)
        MUST(tg_memory_out(driver, to[i], args[i].address, sizes_of[i], &sink));
}

/* ---- what must be where ---- */

/* Where the driver puts the bytes that lie at `offset` without a swizzle. */
static size_t swizzled(size_t offset, int swizzle)
{
    const size_t mask = ((size_t)1 << swizzle) - 1;
    return offset ^ ((offset >> 7 & mask) << 4);
}

static int count_wrong_in_box(const tg_map_desc *recipe, int64_t tokens, int64_t b, int64_t head, int64_t tile,
                              const uint8_t *box)
{
    int n_wrong = 0;
    for (int64_t row = 0; row < ROWS; row++)
        for (int64_t column = 0; column < W; column++) {
            const int64_t span = column / recipe->columns, rest = column % recipe->columns;
            const size_t offset = (size_t)((span * ROWS + row) * recipe->columns + rest) * 2;
            const int64_t t = tile * ROWS + row;
            uint16_t expected = t < tokens ? element(tokens, b, head, t, column) : 0, found;
            memcpy(&found, box + swizzled(offset, recipe->swizzle), sizeof found);
            n_wrong += found != expected;
        }
    return n_wrong;
}

static int count_wrong_clusters(int64_t tokens)
{
    const int64_t tiles = (tokens + ROWS - 1) / ROWS;
    int n_wrong = 0;
    for (int64_t block = 0; block < B * NH * tiles; block++) {
        uint32_t found;
        memcpy(&found, raw + block * RAW_BYTES + BOX_BYTES, sizeof found);
        n_wrong += found != CLUSTER;
    }
    return n_wrong;
}

static int count_wrong(const tg_map_desc *recipe, int64_t tokens)
{
    const int64_t tiles = (tokens + ROWS - 1) / ROWS;
    int n_wrong = 0;
    for (int64_t b = 0; b < B; b++)
        for (int64_t head = 0; head < NH; head++) {
            for (int64_t tile = 0; tile < tiles; tile++)
                n_wrong += count_wrong_in_box(recipe, tokens, b, head, tile,
                                              raw + ((b * NH + head) * tiles + tile) * RAW_BYTES);
            for (int64_t t = 0; t < tokens; t++)
                for (int64_t column = 0; column < W; column++) {
                    const int64_t at = ((b * NH + head) * tokens + t) * W + column;
                    const uint16_t expected = element(tokens, b, head, t, column);
                    n_wrong += (h[at] != expected) + (copy[at] != expected);
                }
        }
    for (int64_t i = B * NH * tokens * W; i < H_ELEMENTS + GUARD; i++)
        n_wrong += (h[i] != 0x5555) + (copy[i] != 0x5555);
    return n_wrong;
}

/* ---- the same in a graph ---- */

static struct {
    int (*cuStreamCreate)(void **stream, unsigned int flags);
    int (*cuStreamDestroy)(void *stream);
    int (*cuStreamBeginCapture)(void *stream, int mode);
    int (*cuStreamEndCapture)(void *stream, void **graph);
    int (*cuGraphInstantiateWithFlags)(void **instance, void *graph, unsigned long long flags);
    int (*cuGraphLaunch)(void *instance, void *stream);
    int (*cuStreamSynchronize)(void *stream);
} cuda;

static bool find(void *library, const char *symbol, void *field)
{
    void *address = dlsym(library, symbol);
    memcpy(field, &address, sizeof address);
    return address != NULL;
}

/* The emulator is an sm_80 unless told otherwise. */
static void be_hopper(void *library)
{
    int (*configure)(const struct tgemu_config *config);
    const struct tgemu_config config = {
        .struct_size = offsetof(struct tgemu_config, smem_optin), .seed = 1, .cc_major = 9};
    if (find(library, "tgemu_configure", &configure))
        MUST(configure(&config));
}

static bool can_capture(void *library)
{
    return find(library, "cuStreamCreate", &cuda.cuStreamCreate) &&
           find(library, "cuStreamDestroy_v2", &cuda.cuStreamDestroy) &&
           find(library, "cuStreamBeginCapture_v2", &cuda.cuStreamBeginCapture) &&
           find(library, "cuStreamEndCapture", &cuda.cuStreamEndCapture) &&
           find(library, "cuGraphInstantiateWithFlags", &cuda.cuGraphInstantiateWithFlags) &&
           find(library, "cuGraphLaunch", &cuda.cuGraphLaunch) &&
           find(library, "cuStreamSynchronize", &cuda.cuStreamSynchronize);
}

static void launch_captured(const tg_module *module, const tg_sizes *sizes, const tg_tensor_arg *args)
{
    void *stream, *graph, *instance;
    MUST(cuda.cuStreamCreate(&stream, 1));      /* does not wait for the default stream */
    MUST(cuda.cuStreamBeginCapture(stream, 0)); /* global: any unsafe call anywhere ends it */
    MUST(tg_launch(module, sizes, NULL, args, N_TENSORS, 0, stream, &sink));
    MUST(cuda.cuStreamEndCapture(stream, &graph));
    MUST(cuda.cuGraphInstantiateWithFlags(&instance, graph, 0));
    MUST(cuda.cuGraphLaunch(instance, stream));
    MUST(cuda.cuStreamSynchronize(stream));
    MUST(cuda.cuStreamDestroy(stream));
}

int main(int argc, char **argv)
{
    static char ptx[1 << 16];
    static const tg_map_desc recipes[] = {
        {.swizzle = TG_SWIZZLE_128, .columns = 64, .rows = ROWS, .spans = 2},
        {.swizzle = TG_SWIZZLE_64, .columns = 32, .rows = ROWS, .spans = 4},
        {.swizzle = TG_SWIZZLE_32, .columns = 16, .rows = ROWS, .spans = 8},
        {.swizzle = TG_SWIZZLE_NONE, .columns = 8, .rows = ROWS, .spans = 16},
        {.swizzle = TG_SWIZZLE_NONE, .columns = 64, .rows = ROWS, .spans = 2},
    };
    static const int64_t lengths[] = {1, 64, 100, MAX_T};
    FILE *file = usage_is(argc, argv, 2, 2, "DRIVER maps.ptx") ? fopen(argv[2], "rb") : NULL;
    if (!file || fread(ptx, 1, sizeof ptx - 1, file) == 0)
        return 2;
    fclose(file);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    MUST(library == NULL);
    be_hopper(library);
    const bool has_graphs = can_capture(library);
    tg_driver *driver;
    tg_tensor_arg args[N_TENSORS] = {{0}};
    MUST(tg_driver_open(argv[1], &driver, &sink));
    MUST(tg_context_acquire(driver, 0, &sink));
    for (int i = 0; i < N_TENSORS; i++) {
        args[i].name = tensors[i].name;
        MUST(tg_memory_alloc(driver, sizes_of[i], &args[i].address, &sink));
    }
    for (int i = 0; i < Q_ELEMENTS; i++)
        q[i] = (uint16_t)((uint32_t)i * 40503u >> 3 | 1);
    MUST(tg_memory_in(driver, args[Q].address, q, sizeof q, &sink));
    int n_wrong = 0, n_calls = 0;
    for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++) {
        tg_program program = make_program(ptx, &recipes[r]);
        tg_module *module;
        MUST(tg_load(driver, &program, &module, &sink));
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            for (int graph = 0; graph <= has_graphs; graph++) {
                const tg_sizes sizes = {B, NH, lengths[l], 0};
                const int64_t stride[] = {lengths[l] * 3 * W, W, 3 * W, 1};
                memcpy(args[Q].stride, stride, sizeof stride);
                clear_outputs(driver, args);
                MUST(tg_synchronize(driver, &sink));
                if (graph)
                    launch_captured(module, &sizes, args);
                else
                    MUST(tg_launch(module, &sizes, NULL, args, N_TENSORS, 0, NULL, &sink));
                fetch_outputs(driver, args);
                const int n = count_wrong(&recipes[r], lengths[l]) + count_wrong_clusters(lengths[l]);
                if (n > 0)
                    fprintf(stderr, "recipe %zu, T %d%s: %d wrong\n", r, (int)lengths[l], graph ? " in a graph" : "",
                            n);
                n_wrong += n;
                n_calls++;
            }
        tg_unload(module);
    }
    printf("tensor maps: %d calls%s, %d wrong\n", n_calls, has_graphs ? ", half in graphs" : "", n_wrong);
    return n_wrong != 0;
}
