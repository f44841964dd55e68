/* tensormap.c - cuTensorMapEncodeTiled, with the checks its manual states, and what a kernel finds
 * in the 128 bytes. They are an encoding of our own: a map is opaque. */
#include "driver.h"
#include "hopper.h"

#define MAGIC 0x70616d5f75676574ull

enum { MAP_BYTES = 128, MAX_BOX = 256, MAX_STEP = 8 };

_Static_assert(sizeof(struct tensor_map) <= MAP_BYTES, "a CUtensorMap has 128 bytes");

/* CUtensorMapDataType */
static const struct {
    const char *name;
    u8 bytes, type;
    bool is_float;
} types[] = {
    {"uint8", 1, TYPE_U8, false},     {"uint16", 2, TYPE_U16, false}, {"uint32", 4, TYPE_U32, false},
    {"int32", 4, TYPE_S32, false},    {"uint64", 8, TYPE_U64, false}, {"int64", 8, TYPE_S64, false},
    {"float16", 2, TYPE_F16, true},   {"float32", 4, TYPE_F32, true}, {"float64", 8, TYPE_F64, true},
    {"bfloat16", 2, TYPE_BF16, true},
};

enum { SWIZZLE_NONE, SWIZZLE_32, SWIZZLE_64, SWIZZLE_128 };

struct request {
    u32 type, rank, swizzle, fill;
    u64 address;
    const u64 *dims, *strides;
    const u32 *box, *steps;
};

#define REFUSE(...) return driver_error(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeTiled: " __VA_ARGS__)

static CUresult check_kind(const struct request *r, int interleave, u32 l2)
{
    if (r->rank < 1 || r->rank > MAX_RANK)
        REFUSE("rank %u is not between 1 and 5", r->rank);
    if (r->type >= sizeof types / sizeof *types)
        REFUSE("data type %u is not known to the emulator", r->type);
    if (interleave)
        REFUSE("interleave %d is not known to the emulator", interleave);
    if (r->swizzle > SWIZZLE_128)
        REFUSE("swizzle %u is not known to the emulator", r->swizzle);
    if (l2 > 3)
        REFUSE("L2 promotion %u", l2);
    if (r->fill > 1 || (r->fill && !types[r->type].is_float))
        REFUSE("fill %u of elements that are %s", r->fill, types[r->type].name);
    if (!r->dims || !r->box || !r->steps || (r->rank > 1 && !r->strides))
        REFUSE("a null pointer");
    if (!r->address || r->address & 15)
        REFUSE("global address 0x%llx is not a multiple of 16", (unsigned long long)r->address);
    return CUDA_SUCCESS;
}

static CUresult check_dimension(const struct request *r, u32 i)
{
    if (!r->dims[i] || r->dims[i] > 1ull << 32)
        REFUSE("dimension %u has %llu elements", i, (unsigned long long)r->dims[i]);
    if (!r->box[i] || r->box[i] > MAX_BOX)
        REFUSE("the box has %u elements in dimension %u; 1 to 256 are possible", r->box[i], i);
    if (!r->steps[i] || r->steps[i] > MAX_STEP)
        REFUSE("element stride %u in dimension %u; 1 to 8 are possible", r->steps[i], i);
    if (i + 1 < r->rank && (r->strides[i] & 15 || r->strides[i] >= 1ull << 40))
        REFUSE("stride %llu of dimension %u is not a multiple of 16 below 2^40", (unsigned long long)r->strides[i],
               i + 1);
    return CUDA_SUCCESS;
}

static CUresult check(const struct request *r, int interleave, u32 l2)
{
    CUresult result = check_kind(r, interleave, l2);
    for (u32 i = 0; !result && i < r->rank; i++)
        result = check_dimension(r, i);
    if (result)
        return result;
    const u32 inner = r->box[0] * types[r->type].bytes, span = 16u << r->swizzle;
    if (inner & 15)
        REFUSE("the box's rows have %u bytes, not a multiple of 16", inner);
    if (r->swizzle && inner > span)
        REFUSE("the box's rows have %u bytes, the swizzle's %u", inner, span);
    return CUDA_SUCCESS;
}

API CUresult cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const u64 *dims,
                                    const u64 *strides, const u32 *box, const u32 *steps, int interleave, int swizzle,
                                    int l2, int fill)
{
    const struct request r = {.type = (u32)type,
                              .rank = rank,
                              .swizzle = (u32)swizzle,
                              .fill = (u32)fill,
                              .address = (u64)(uintptr_t)address,
                              .dims = dims,
                              .strides = strides,
                              .box = box,
                              .steps = steps};
    BEGIN(false)
    if (!map || (uintptr_t)map & 63)
        result = driver_error(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeTiled: the map is not at a multiple of 64");
    if (!result)
        result = check(&r, interleave, (u32)l2);
    if (result)
        return driver_unlock(result);
    struct tensor_map m = {.magic = MAGIC,
                           .base = r.address,
                           .rank = (u8)rank,
                           .type = types[r.type].type,
                           .element_bytes = types[r.type].bytes,
                           .swizzle = (u8)((1u << r.swizzle) - 1),
                           .has_nan_fill = r.fill != 0};
    for (u32 i = 0; i < rank; i++) {
        m.last[i] = (u32)(dims[i] - 1);
        m.box[i] = (u16)box[i];
        m.step[i] = (u8)steps[i];
        if (i)
            m.stride[i - 1] = strides[i - 1];
    }
    memset(map, 0, MAP_BYTES);
    memcpy(map, &m, sizeof m);
    return driver_unlock(result);
}

/* -- in kernels ------------------------------------------------------------------------------ */

static const u8 *map_bytes(struct warp *w, int lane, u64 address)
{
    const u64 given = address;
    const u32 space = generic_space(&address);
    if (space == SPACE_PARAM && address + MAP_BYTES <= w->kernel->param_bytes)
        return w->cta->params + address;
    struct allocation *a = space == SPACE_GLOBAL ? memory_find(w->cta->launch->memory, address, MAP_BYTES) : NULL;
    if (!a)
        fault(w, REPORT_OUT_OF_BOUNDS, lane, "a tensor map at generic address 0x%llx, which is %s",
              (unsigned long long)given,
              space == SPACE_LOCAL    ? "in local memory: is the parameter a .param of its own?"
              : space == SPACE_SHARED ? "in shared memory"
                                      : "no parameter and no device memory");
    return a ? a->data + (address - a->base) : NULL;
}

/* False after a fault. */
bool tensor_map_read(struct warp *w, int lane, u64 address, struct tensor_map *out)
{
    const u8 *p = map_bytes(w, lane, address);
    if (!p)
        return false;
    memcpy(out, p, sizeof *out);
    if (address & 63)
        fault(w, REPORT_MISALIGNED, lane, "a tensor map at generic address 0x%llx, which is not a multiple of 64",
              (unsigned long long)address);
    else if (out->magic != MAGIC)
        fault(w, REPORT_TENSOR_MAP, lane,
              "what lies at generic address 0x%llx is not what cuTensorMapEncodeTiled has made",
              (unsigned long long)address);
    return w->event != EVENT_FAULT;
}
