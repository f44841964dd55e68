/* examples/schedule/mine.c - a schedule of your own for an algorithm that Tegula knows.
 *
 *     cmake -S examples/schedule -B build/mine -Dtegula_DIR=$PWD/build && cmake --build build/mine
 *     build/bin/tegula check --load build/mine/mine.so mine tests/data/mlstmsig_a.safetensors
 *
 * or without CMake: cc -std=c11 -shared -fPIC -Ibuild/include examples/schedule/mine.c -o mine.so
 *
 * Nothing is linked: the algorithm is the command's own, and so is the fp64 oracle that `check`
 * compares with. A mistake in the rows is reported with its line in this file (try Lhq 48), and
 * `tegula explain --load build/mine/mine.so mine` shows what becomes of them. */
#include <tegula/variants/scalar.h>
#include <tegula/variants/variants.h>

/* Small tiles and a short chunk: for few heads of short sequences, where more blocks count for more
 * than fewer bytes. Lhq 64 rows of h at a time against Lkv 32 keys. */
static const tg_schedule small_tiles = {
    TG_HEADER(tg_schedule),
    .name = "small-tiles",
    .file = __FILE__,
    .algorithm = &tg_mlstm_sig_algorithm,
    .chunk = 64,
    .n_rows = 3,
    .rows = {
        {.name = "gates", .outputs = {B, CJ, WI, W, GT}, .warps = 2, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(64)}},
        {.name = "state", .outputs = {CK}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2,
         .line = __LINE__,
         .row = {[TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(32), [TG_DQK] = TG_P(32),
                 [TG_DHV] = TG_P(64)}},
        {.name = "H", .outputs = {H}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_LKV] = TG_L(32),
                 [TG_DQK] = TG_L(32), [TG_DHV] = TG_P(64)}},
    },
};

static const tg_vary vary[] = {
    {.field = TG_FIELD_CHUNK, .values = {64, 128, 256}, .line = __LINE__},
    {.field = TG_FIELD_STAGES, .rows = {"H"}, .values = {2, 3}, .line = __LINE__},
};

static const tg_space space = {
    TG_HEADER(tg_space),
    .name = "small-tiles",
    .file = __FILE__,
    .schedule = &small_tiles,
    .vary = vary,
    .n_vary = TG_COUNT(vary),
};

static const tg_schedule *const schedules[] = {&small_tiles, NULL};
static const tg_space *const spaces[] = {&space, NULL};

static const tg_variant mine = {
    TG_HEADER(tg_variant),
    .name = "mine",
    .algorithm = &tg_mlstm_sig_algorithm,
    .schedules = schedules,
    .spaces = spaces,
};

/* What `--load` looks for. */
TG_API const tg_variant *const tg_variants[] = {&mine, NULL};
