/* runtime/map.c - the tensor map of a recipe for the sizes and strides of one call.
 *
 * A map is a function of what its encoder is given, so it is kept: engines launch with the same few addresses again and
 * again. Every recipe has a few places, of which an address may have one. One thread at a time writes a place, any read it,
 * and none waits: its turn is odd while it is written and another one afterwards, so that who reads meanwhile sees that, and
 * encodes. */
#include "runtime/internal.h"

#include <string.h>

enum { RANK = 5, STRIDE_UNIT = 16, COLUMNS = 3 /* axis, behind B, NH and T */ };

static int data_type(const tg_tensor_info *info)
{
    return info->dtype == TG_BF16 ? CU_MAP_BF16 : info->dtype == TG_F16 ? CU_MAP_F16 : CU_MAP_F32;
}

uint32_t maps_before(const tg_program *program, uint32_t kernel)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < kernel; k++)
        n += program->kernels[k].n_maps;
    return n;
}

/* ---- places ---- */

static struct map_place *place_of(struct map_place *places, uint64_t address)
{
    const uint64_t mixed = (address >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return &places[mixed >> 32 & (MAP_PLACES - 1)];
}
_Static_assert((MAP_PLACES & (MAP_PLACES - 1)) == 0, "a mask");

static bool recall(const struct map_place *place, const uint64_t key[MAP_KEY], struct cu_tensor_map *map)
{
    const uint32_t turn = __atomic_load_n(&place->turn, __ATOMIC_ACQUIRE);
    bool same = turn != 0 && turn % 2 == 0;
    for (int i = 0; i < MAP_KEY && same; i++)
        same = __atomic_load_n(&place->key[i], __ATOMIC_ACQUIRE) == key[i];
    for (int i = 0; i < MAP_WORDS && same; i++)
        map->opaque[i] = __atomic_load_n(&place->map[i], __ATOMIC_ACQUIRE);
    return same && __atomic_load_n(&place->turn, __ATOMIC_ACQUIRE) == turn;
}

static void keep(struct map_place *place, const uint64_t key[MAP_KEY], const struct cu_tensor_map *map)
{
    uint32_t turn = __atomic_load_n(&place->turn, __ATOMIC_RELAXED);
    if (turn % 2 ||
        !__atomic_compare_exchange_n(&place->turn, &turn, turn + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return; /* another one writes it */
    for (int i = 0; i < MAP_KEY; i++)
        __atomic_store_n(&place->key[i], key[i], __ATOMIC_RELEASE);
    for (int i = 0; i < MAP_WORDS; i++)
        __atomic_store_n(&place->map[i], map->opaque[i], __ATOMIC_RELEASE);
    __atomic_store_n(&place->turn, turn + 2, __ATOMIC_RELEASE);
}

/* ---- a call ---- */

cu_result map_encode(const tg_driver *driver, const tg_program *program, const tg_sizes *sizes,
                     const tg_map_desc *recipe, uint64_t address, const int64_t *stride, struct map_place *places,
                     struct cu_tensor_map *map)
{
    static const uint32_t every[RANK] = {1, 1, 1, 1, 1};
    static const uint8_t dimensions[] = {4, 3, 1}; /* of the axes B, NH and T */
    const tg_tensor_info *info = &program->tensors[recipe->tensor];
    const uint64_t bytes = tg_dtype_bytes((tg_dtype)info->dtype);
    const uint64_t width = (uint64_t)tg_tensor_extent(program, sizes, recipe->tensor, COLUMNS);
    const uint32_t box[RANK] = {recipe->columns, recipe->rows, recipe->spans, 1, 1};
    const bool has_spans = width % recipe->columns == 0;
    uint64_t extents[RANK] = {has_spans ? recipe->columns : width, 0, has_spans ? width / recipe->columns : 1, 0, 0};
    uint64_t strides[RANK] = {bytes, 0, recipe->columns * bytes, 0, 0};
    for (uint32_t axis = 0; axis < sizeof dimensions; axis++) {
        const uint8_t d = dimensions[axis];
        extents[d] = (uint64_t)tg_tensor_extent(program, sizes, recipe->tensor, axis);
        /* The stride of a single entry may be anything, and the driver takes not everything. */
        strides[d] = extents[d] > 1 ? (uint64_t)stride[axis] * bytes : STRIDE_UNIT;
    }
    const uint64_t key[MAP_KEY] = {address,    extents[0], extents[1], extents[2], extents[3],
                                   extents[4], strides[1], strides[2], strides[3], strides[4]};
    struct map_place *const place = place_of(places, address);
    if (recall(place, key, map))
        return CU_SUCCESS;
    const cu_result result = driver->cuTensorMapEncodeTiled(map, data_type(info), RANK, (void *)(uintptr_t)address,
                                                            extents, strides + 1, box, every, CU_MAP_NOT_INTERLEAVED,
                                                            recipe->swizzle, CU_MAP_L2_128, CU_MAP_FILL_ZEROS);
    if (result == CU_SUCCESS)
        keep(place, key, map);
    return result;
}
