/* program/verify_map.c - the rules of a tensor map: what the driver's encoder takes, and what a kernel may rely on. */
#include "program/fail.h"
#include "program/verify.h"

#include <inttypes.h>

/* Elements of a box in one dimension, bytes of a span that is not swizzled. */
enum { MAX_BOX = 256, MAX_SPAN_BYTES = 128 };

#define REQUIRE(condition, ...) REQUIRE_CODE("TG0724", condition, __VA_ARGS__)

/* What the encoder of the driver would refuse, or would take and read other columns with. */
static tg_status verify_box(const tg_program *program, const tg_kernel *kernel, uint32_t i, const tg_sink *sink)
{
    const tg_map_desc *map = &kernel->maps[i];
    const tg_tensor_info *t = &program->tensors[map->tensor];
    const uint32_t bytes = tg_dtype_bytes((tg_dtype)t->dtype) * map->columns;
    const uint32_t most = map->swizzle ? 16u << map->swizzle : MAX_SPAN_BYTES;
    const uint32_t width = t->axes[1] == TG_DQK   ? program->dqk
                           : t->axes[1] == TG_DHV ? program->dhv
                                                  : program->chunk_default;
    REQUIRE(bytes >= 16 && bytes <= most && bytes % 16 == 0,
            "kernel %s: maps[%" PRIu32 "].columns (%s): expected a multiple of 16 bytes up to "
            "%" PRIu32 ", found %d columns, %" PRIu32 " bytes",
            kernel->name, i, t->name, most, map->columns, bytes);
    REQUIRE(map->rows >= 1 && map->rows <= MAX_BOX, "kernel %s: maps[%" PRIu32 "].rows (%s): expected 1..%d, found %d",
            kernel->name, i, t->name, MAX_BOX, map->rows);
    REQUIRE(map->spans >= 1 && map->spans <= MAX_BOX,
            "kernel %s: maps[%" PRIu32 "].spans (%s): expected 1..%d, found %d", kernel->name, i, t->name, MAX_BOX,
            map->spans);
    REQUIRE(map->spans == 1 || width % map->columns == 0,
            "kernel %s: maps[%" PRIu32 "].spans (%s): expected 1, as %d columns do not divide the width %" PRIu32
            ", found %d",
            kernel->name, i, t->name, map->columns, width, map->spans);
    REQUIRE(bytes * map->rows * map->spans <= kernel->shared_bytes,
            "kernel %s: maps[%" PRIu32 "] (%s): expected a box within the %" PRIu32
            " bytes of shared memory, found %" PRIu32,
            kernel->name, i, t->name, kernel->shared_bytes, bytes * map->rows * map->spans);
    return TG_OK;
}

tg_status verify_map(const tg_program *program, const tg_kernel *kernel, uint32_t i, const tg_sink *sink)
{
    const tg_map_desc *map = &kernel->maps[i];
    REQUIRE(map->tensor < program->n_tensors,
            "kernel %s: maps[%" PRIu32 "].tensor: expected below %" PRIu32 ", found %d", kernel->name, i,
            program->n_tensors, map->tensor);
    const tg_tensor_info *t = &program->tensors[map->tensor];
    REQUIRE(t->axes[0] == TG_T && (t->axes[1] == TG_DQK || t->axes[1] == TG_DHV || t->axes[1] == TG_POSITION) &&
                t->axes[2] == TG_AXIS_NONE,
            "kernel %s: maps[%" PRIu32 "].tensor: expected one of axes [T, dqk], [T, dhv] or [T, position], found %s",
            kernel->name, i, t->name);
    REQUIRE(t->dtype == TG_BF16 || t->dtype == TG_F16 || t->dtype == TG_F32,
            "kernel %s: maps[%" PRIu32 "].tensor: expected one of bf16, f16 or f32, found %s of %s", kernel->name, i,
            t->name, tg_dtype_name((tg_dtype)t->dtype));
    REQUIRE(map->swizzle <= TG_SWIZZLE_128, "kernel %s: maps[%" PRIu32 "].swizzle (%s): expected 0..%d, found %d",
            kernel->name, i, t->name, TG_SWIZZLE_128, map->swizzle);
    uint32_t n_passed = 0;
    for (uint32_t a = 0; a < kernel->n_args; a++) {
        const tg_arg_desc *arg = &kernel->args[a];
        n_passed += arg->kind == TG_ARG_MAP && arg->axis == i;
    }
    REQUIRE(n_passed == 1, "kernel %s: maps[%" PRIu32 "] (%s): expected one argument with it, found %" PRIu32,
            kernel->name, i, t->name, n_passed);
    return verify_box(program, kernel, i, sink);
}
