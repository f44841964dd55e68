/* runtime/map.c - the tensor map of a recipe for the sizes and strides of one call. */
#include "runtime/internal.h"

#include <string.h>

enum { RANK = 5, STRIDE_UNIT = 16, COLUMNS = 3 /* axis, behind B, NH and T */ };

static int data_type(const tg_tensor_info *info)
{
    return info->dtype == TG_BF16 ? CU_MAP_BF16 : info->dtype == TG_F16 ? CU_MAP_F16 : CU_MAP_F32;
}

cu_result map_encode(const tg_driver *driver, const tg_program *program, const tg_sizes *sizes,
                     const tg_map_desc *recipe, uint64_t address, const int64_t *stride, struct cu_tensor_map *map)
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
    return driver->cuTensorMapEncodeTiled(map, data_type(info), RANK, (void *)(uintptr_t)address, extents, strides + 1,
                                          box, every, CU_MAP_NOT_INTERLEAVED, recipe->swizzle, CU_MAP_L2_128,
                                          CU_MAP_FILL_ZEROS);
}
