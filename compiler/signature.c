/* compiler/signature.c - what a program says of itself besides its kernels: tensors, scalars, sizes. */
#include "compiler/plan.h"
#include "compiler/plan_program.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Blocks of positions must divide the chunk: no block belongs to two chunks. */
uint32_t plan_chunk_multiple(const tg_schedule *schedule)
{
    uint32_t multiple = 1;
    for (uint32_t r = 0; r < schedule->n_rows; r++)
        for (uint32_t d = TG_LQ; d <= TG_LKV; d++) {
            const uint32_t block = schedule->rows[r].row[d].block;
            if (schedule->rows[r].mma == TG_MMA_NONE || !block) /* vector kernels mask the end of a chunk */
                continue;
            uint32_t a = multiple, b = block;
            while (b) {
                const uint32_t rest = a % b;
                a = b;
                b = rest;
            }
            multiple = multiple / a * block;
        }
    return multiple;
}

uint32_t plan_chunk_most(const tg_schedule *schedule, const struct tg_slices *slices)
{
    if (slices->has_one_chunk)
        return schedule->max_tokens ? 0 : schedule->chunk;
    /* a walk's chunk is one tile; so is that of a row on tensor cores that makes decays of channels */
    for (uint32_t r = 0; r < schedule->n_rows; r++)
        if (schedule->rows[r].mma == TG_MMA_WGMMA ||
            (slices->good >> r & 1 && tg_row_scans_channels(schedule->algorithm, &schedule->rows[r], &slices->rows[r])))
            return schedule->chunk;
    return 0;
}

void plan_copy_name(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
}

/* Tiles that are in memory in this schedule: the caller's tensors and what one row writes for another. */
static tg_bits memory_tiles(const tg_schedule *schedule, const struct tg_slices *slices)
{
    tg_bits set = 0;
    for (uint32_t r = 0; r < schedule->n_rows; r++)
        if (slices->good >> r & 1)
            set |= slices->rows[r].loads | slices->rows[r].stores;
    for (uint32_t t = 1; t < schedule->algorithm->n_tensors; t++)
        if (schedule->algorithm->tensors[t].flags & (TG_IN | TG_OUT))
            set |= TG_BIT(t);
    return set;
}

/* A kept intermediate is the caller's: an output where a row writes it, an input where none does. What is steady matters to
 * schedules alone. */
static uint8_t flags_of(const tg_schedule *schedule, uint32_t tile)
{
    const uint8_t flags = schedule->algorithm->tensors[tile].flags & (uint8_t)~TG_STEADY;
    if (!tg_tile_kept(schedule, tile))
        return flags;
    return (uint8_t)(flags | (tg_tile_row(schedule, tile) >= 0 ? TG_OUT : TG_IN));
}

/* What packed sequences and pooled states need beside the algorithm's tensors. */
static void add_tables(tg_program *program, const tg_shape_class *shape, uint8_t index[TG_MAX_TILES])
{
    if (shape->packed) {
        index[TILE_CU] = (uint8_t)program->n_tensors;
        program->tensors[program->n_tensors++] = (tg_tensor_info){
            .name = "cu", .dtype = TG_I32, .flags = TG_IN | TG_NO_BATCH | TG_NO_HEADS, .axes = {TG_CUTS}};
    }
    if (shape->pooled) {
        index[TILE_INDEX] = (uint8_t)program->n_tensors;
        program->tensors[program->n_tensors++] =
            (tg_tensor_info){.name = "index", .dtype = TG_I32, .flags = TG_IN | TG_NO_HEADS};
    }
    if (shape->pooled >= TG_POOL_MOVES) {
        index[TILE_INDEX_OUT] = (uint8_t)program->n_tensors;
        program->tensors[program->n_tensors++] =
            (tg_tensor_info){.name = "index_out",
                             .dtype = TG_I32,
                             .flags = TG_IN | TG_NO_HEADS,
                             .axes = {shape->pooled == TG_POOL_TOKENS   ? TG_T
                                      : shape->pooled == TG_POOL_CHUNKS ? TG_CHUNK
                                                                        : TG_AXIS_NONE}};
    }
    if (shape->counted) {
        index[TILE_COUNT] = (uint8_t)program->n_tensors;
        program->tensors[program->n_tensors++] =
            (tg_tensor_info){.name = "count", .dtype = TG_I32, .flags = TG_IN | TG_NO_HEADS};
    }
}

/* Parts of a sum: of numbers of dqk or dhv before these, so that neighbours stay beside each other; else last. */
static void add_parts(tg_tensor_info *to, uint32_t parts)
{
    uint32_t at = 0;
    while (at < TG_MAX_AXES && to->axes[at] != TG_AXIS_NONE)
        at++;
    if (parts == 1 || at == TG_MAX_AXES)
        return;
    to->parts = (uint8_t)parts;
    if (at && plan_is_width(to->axes[at - 1])) {
        to->axes[at] = to->axes[at - 1];
        at--;
    }
    to->axes[at] = TG_PARTS;
}

/* The program's tensors, the caller's first; index[tile] is the tile's number among them. */
bool plan_tensors(tg_program *program, const tg_schedule *schedule, const struct tg_slices *slices,
                  const tg_shape_class *shape, uint8_t index[TG_MAX_TILES], const tg_sink *sink)
{
    const tg_algorithm *a = schedule->algorithm;
    const tg_bits set = memory_tiles(schedule, slices);
    for (int workspace = 0; workspace < 2; workspace++) {
        for (uint32_t t = 1; t < a->n_tensors; t++) {
            const tg_tensor *from = &a->tensors[t];
            const uint8_t flags = flags_of(schedule, t);
            if (!(set >> t & 1) || (workspace == 0) != ((flags & (TG_IN | TG_OUT)) != 0))
                continue;
            if (program->n_tensors == TG_MAX_TENSORS - N_ADDED) {
                tg_report(sink, TG_ERROR, "TG0543", a->file, 0, "write fewer intermediates to memory",
                          "algorithm %s has more than %d tensors in memory", a->name, TG_MAX_TENSORS - N_ADDED);
                return false;
            }
            index[t] = (uint8_t)program->n_tensors;
            tg_tensor_info *to = &program->tensors[program->n_tensors++];
            plan_copy_name(to->name, sizeof to->name, from->name);
            to->flags = flags;
            to->dtype = (uint8_t)plan_dtype_in(schedule, slices, shape, t);
            const uint8_t *axes = plan_axes_of(from, shape);
            for (uint32_t axis = 0; axis < TG_MAX_AXES; axis++)
                to->axes[axis] = axes[axis] == TG_LKV ? TG_POSITION : axes[axis];
            to->segment = (uint16_t)tg_tile_segment(schedule, t);
            add_parts(to, plan_parts(schedule, slices, shape, t));
        }
        if (!workspace)
            add_tables(program, shape, index);
    }
    if (!plan_add_between(program, schedule, sink))
        return false;
    uint8_t place[TG_MAX_TILES];
    plan_places(schedule, slices, shape, place);
    for (uint32_t t = 1; t < a->n_tensors; t++)
        if (place[t] && place[t] != t)
            program->tensors[index[t]].place = (uint8_t)(index[place[t]] + 1);
    return true;
}

static void fill_scalars(tg_program *program, const tg_algorithm *a, const tg_shape_class *shape)
{
    static const tg_scalar scale_alone[] = {{"scale", 0}};
    const tg_scalar *from = a->n_scalars ? a->scalars : scale_alone;
    program->n_scalars = a->n_scalars ? a->n_scalars : 1;
    for (uint32_t i = 0; i < program->n_scalars; i++) {
        plan_copy_name(program->scalars[i].name, sizeof program->scalars[i].name, from[i].name);
        program->scalars[i].value = from[i].value;
    }
    if (program->scalars[0].value == 0)
        program->scalars[0].value = (float)(1 / sqrt(shape->dqk));
}

void plan_header(tg_program *program, const char *variant, const tg_schedule *schedule, const tg_target *target,
                 const tg_shape_class *shape)
{
    struct tg_slices slices;
    tg_schedule_slice(schedule, schedule->n_rows, &slices);
    program->struct_size = sizeof *program;
    program->version = TG_PROGRAM_VERSION;
    plan_copy_name(program->variant, sizeof program->variant, variant);
    plan_copy_name(program->schedule, sizeof program->schedule, schedule->name);
    plan_copy_name(program->arch, sizeof program->arch, target->arch);
    program->arch_exact = target->exact;
    program->io_dtype = (uint8_t)shape->io;
    program->packed = shape->packed;
    program->pooled = shape->pooled;
    program->group = group_of(shape);
    program->max_tokens = schedule->max_tokens;
    program->dqk = shape->dqk;
    program->dhv = shape->dhv;
    program->chunk_multiple = plan_chunk_multiple(schedule);
    program->chunk_default = schedule->chunk;
    program->chunk_most = plan_chunk_most(schedule, &slices);
    program->pieces = schedule->pieces;
    fill_scalars(program, schedule->algorithm, shape);
}
