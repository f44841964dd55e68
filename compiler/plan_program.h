/* compiler/plan_program.h - questions about the program that kernels are of: tensors, states, workspace, launch, cost. */
#ifndef TEGULA_PLAN_PROGRAM_H
#define TEGULA_PLAN_PROGRAM_H

#include "compiler/plan.h"

/* Partial sums in memory of a tile whose row sums over a parallel dimension; 1: none, or a cluster adds them up. */
uint32_t plan_parts(const tg_schedule *schedule, const struct tg_slices *slices, const tg_shape_class *shape,
                    uint32_t tile);
/* Heads whose sum alone is in memory, in the place of the first of them: so many work together in the row that writes the
 * tile, and all that read it sum over heads. 1: each head has its own. */
uint32_t plan_heads_summed(const tg_schedule *schedule, const tg_shape_class *shape, uint32_t tile);
/* Is it what a walk writes of each head, or of some together, for nothing but a sum over heads? It is in the input type then, as what
 * is made of the sum, unless it has parts. */
bool plan_is_for_heads(const tg_schedule *schedule, const tg_shape_class *shape, uint32_t tile);
/* workspace.c: the tile in whose memory each intermediate is: itself, or one of the same size that no row from the first
 * that uses this needs; 0: it is none, or the caller's. */
void plan_places(const tg_schedule *schedule, const struct tg_slices *slices, const tg_shape_class *shape,
                 uint8_t place[TG_MAX_TILES]);
/* states.c: how callers keep states. Axes and type of a tensor in memory: of states as the class says, of others as declared. */
const uint8_t *plan_axes_of(const tg_tensor *tensor, const tg_shape_class *shape);
tg_dtype plan_dtype_of(const tg_tensor *tensor, const tg_shape_class *shape);
/* ... of a tile: one that is for a sum over heads in the input type (plan_is_for_heads). */
tg_dtype plan_dtype_in(const tg_schedule *schedule, const struct tg_slices *slices, const tg_shape_class *shape,
                       uint32_t tile);
/* ... of a tile of the plan; where the dimension is among its axes; the innermost one, TG_AXIS_NONE of a number. */
const uint8_t *plan_memory_axes(const struct plan *p, uint32_t tile);
tg_dtype plan_memory_dtype(const struct plan *p, uint32_t tile);
uint32_t plan_axis_of(const struct plan *p, uint32_t tile, uint32_t dim);
uint32_t plan_last_axis(const struct plan *p, uint32_t tile);
/* ... elements from one part of it to the next, where it is a sum in parts (signature.c: add_parts). */
uint32_t plan_part_step(const struct plan *p, uint32_t tile);
static inline bool plan_is_width(uint32_t axis)
{
    return axis == TG_DQK || axis == TG_DHV;
}
/* Is a state that lies otherwise than declared read only where any order will do? False after reporting. */
bool plan_check_states(const struct plan *p);
/* Where sequences of a step may have no tokens, their states are in a pool: there they stay as they are. */
static inline bool plan_takes_ragged(const tg_shape_class *shape)
{
    return shape->pooled || !(shape->packed || shape->counted);
}
/* Is it a state that goes to a slot behind every token or chunk? Their stores, behind the loop, move to the end of its step. */
bool plan_keeps_on_the_way(const struct plan *p, uint32_t tile);
bool plan_keep_states(struct plan *p);
/* Does the tile belong to a slot of the caller's pool? */
bool plan_is_pooled(const struct plan *p, uint32_t tile);
/* Have sequences of a decode step each their own number of tokens? */
static inline bool plan_counts_tokens(const struct plan *p)
{
    return p->schedule->max_tokens && (p->shape.packed || p->shape.counted);
}
/* May the kernel begin while those ahead on the stream end? It waits for them itself (griddepcontrol.wait, of sm_90). */
static inline bool plan_overlaps(const struct plan *p)
{
    return p->target->cc >= 90;
}
/* pieces.c: of a schedule that is taken in pieces. May the kernel begin while the one ahead, of the piece before, is still at work?
 * It waits for that at its end, for those behind it. Does it let such a one begin? */
bool plan_begins_beside(const struct plan *p);
bool plan_lets_next_begin(const struct plan *p);
/* Can the call be taken in pieces? False after reporting. */
bool plan_check_pieces(const struct plan *p);
/* What the states of a piece are in memory until the next one begins with them: tensors of the workspace, behind all others. */
bool plan_add_between(tg_program *program, const tg_schedule *schedule, const tg_sink *sink);
/* relay.c: does the kernel clear what says that a relayed state is there? */
bool plan_clears_turns(const struct plan *p);
/* Can the kernel relay? False after reporting. Numbers of a state that each of its threads has. */
bool plan_check_relay(const struct plan *p);
uint32_t plan_relayed(const struct plan *p);
/* The states and who may go on: tensors of the workspace, behind all others. */
void plan_add_relay(tg_program *program, const struct plan *plans, uint32_t n, uint8_t index[TG_MAX_TILES]);
/* turns.c: does the kernel clear what says how many parts a chunk's sum has? */
bool plan_clears_sums(const struct plan *p);
/* Can a kernel whose loading warp stores outputs add them up in memory, in turn? */
bool plan_may_add_in_turn(const struct plan *p);
/* Sums of a head's chunk: one for each block of what the output has. */
uint32_t plan_sums_of_chunk(const struct plan *p);
/* How many parts each sum has: a tensor of the workspace, behind all others. */
void plan_add_summed(tg_program *program, const struct plan *plans, uint32_t n, uint8_t index[TG_MAX_TILES]);
/* Thread blocks of a cluster; 0: the kernel has none. */
static inline uint32_t plan_cluster_size(const struct plan *p)
{
    return p->in_turn ? 0 : p->cluster;
}
/* launch.c: grid and parameters of the kernel */
uint32_t plan_grid(const struct plan *p, tg_term terms[TG_MAX_TERMS]);
/* Dimensions of grid.x, fastest first; returns their number. */
uint32_t plan_grid_dims(const struct plan *p, uint8_t dims[TG_N_DIMS]);
/* From one chunk of the grid to the next: 1, or those of a segment of which thread blocks have the last. */
uint32_t plan_chunk_step(const struct plan *p);
/* Chunks of a thread block, a warp each; 1 where all its threads have the same. */
uint32_t plan_chunks_together(const struct plan *p);
uint32_t plan_args(const struct plan *p, tg_arg_desc args[TG_MAX_ARGS]);
/* The tensor whose strides are this one's: in a kernel without products the first in the workspace that lies like it, so that one
 * index serves all of them; otherwise itself. */
uint32_t plan_strides_of(const struct plan *p, uint32_t tile);
/* Are they no more than a kernel may have? False after reporting. */
bool plan_check_args(const struct plan *p);
/* cost.c: of a kernel, for a call of these sizes; of packed sequences `tokens` is that of each. */
tg_cost plan_cost(const struct plan *p, const tg_sizes *s);
/* ... of a call, of what its kernels take one behind the other: the sum, but for what pieces have side by side. */
double plan_seconds(const tg_schedule *schedule, const struct tg_slices *slices, const tg_target *target,
                    const tg_shape_class *shape, const tg_sizes *s, const double seconds[TG_MAX_ROWS]);
/* What the model counts of them: packed sequences as if they were of equal length. */
tg_sizes plan_sizes(const tg_shape_class *shape, const tg_sizes *sizes);
/* The model tells no smaller differences between schedules, or between blocks of a row. */
static const double plan_tie = 1.1;
/* search.c: of tg_schedule_each those choices alone that may be a decision, the fastest or a tie with it, and some others; for a
 * shape that plan_check_shape takes. */
tg_status plan_each_fast(const tg_variant *variant, const tg_target *target, const tg_shape_class *shape,
                         const tg_sizes *sizes, tg_choice_fn *visit, void *user);
/* compile.c: widths, types and groups that there are, and nothing said of states that there are not */
bool plan_check_shape(const tg_algorithm *algorithm, const tg_shape_class *shape, const tg_sink *sink);
/* signature.c */
uint32_t plan_chunk_multiple(const tg_schedule *schedule); /* position blocks must divide the chunk size */
uint32_t plan_chunk_most(const tg_schedule *schedule, const struct tg_slices *slices); /* 0: any */
/* The program's tensors, the caller's first; index[tile] is the tile's number among them. */
bool plan_tensors(tg_program *program, const tg_schedule *schedule, const struct tg_slices *slices,
                  const tg_shape_class *shape, uint8_t index[TG_MAX_TILES], const tg_sink *sink);
void plan_header(tg_program *program, const char *variant, const tg_schedule *schedule, const tg_target *target,
                 const tg_shape_class *shape);
void plan_copy_name(char *to, size_t size, const char *from);

#endif
