/* compiler/cluster.c - neighbouring thread blocks of dqk or dhv, or of the heads of a group, that work together: a cluster.
 *
 * Two of them add up the parts of the output that they have (TG_CLUSTER), or two or four load once what is the same in
 * all of them (TG_CAST): each loads some columns of such a matrix, in whole spans of 64, into the shared memory of all.
 * Clusters of both dqk and dhv are one, in the order of the grid. Where sums are made in memory, in turn (turns.c), two thread blocks add
 * up as well, and are no cluster. */
#include "compiler/plan.h"
#include "compiler/plan_walk.h"

/* One block of a dimension has nobody to add up or share with. */
void plan_find_cluster(struct plan *p)
{
    uint32_t n = 1;
    for (uint32_t d = 0; d < TG_N_DIMS; d++) {
        const tg_axis_role axis = p->row->row[d];
        const uint32_t blocks = !axis.cluster ? 1 : d == TG_MEMBER ? group_of(&p->shape) : plan_blocks(p, d);
        const uint32_t along = blocks < 2 ? 1 : axis.cluster & TG_ADDS ? blocks : tg_sharing(axis);
        p->adds = along > 1 && (axis.cluster & TG_ADDS) ? d : p->adds;
        p->along[d] = (uint8_t)along;
        n *= along;
    }
    p->cluster = n > 1 ? n : 0;
}

uint32_t plan_cluster_step(const struct plan *p, uint32_t dim)
{
    return dim == TG_DQK ? p->along[TG_DHV] : 1; /* as plan_grid_dims has them */
}

static bool shares_along(const struct plan *p, uint32_t dim)
{
    return p->along[dim] > 1 && tg_sharing(p->row->row[dim]);
}

uint32_t plan_shared_along(const struct plan *p, const struct value *v)
{
    const uint32_t other = v->dims[1] == TG_DQK ? TG_DHV : TG_DQK;
    return shares_along(p, other) ? other : 0;
}

uint32_t plan_sharers(const struct plan *p, const struct value *v)
{
    return p->along[plan_shared_along(p, v)];
}

bool plan_shares(const struct plan *p)
{
    return shares_along(p, TG_DQK) || shares_along(p, TG_DHV);
}

static bool refuse(const struct plan *p, const char *hint, const char *what)
{
    plan_refuse(p, "TG0518", hint, "kernel %s on warpgroups: %s", p->row->name, what);
    return false;
}

bool plan_is_added_up(const struct plan *p, uint32_t tile)
{
    return p->adds && tg_is_cluster_sum(p->algorithm, p->row, tile, p->adds);
}

bool plan_is_exchanged(const struct plan *p, uint32_t tile)
{
    return !p->in_turn && plan_is_added_up(p, tile);
}

uint32_t plan_cluster_sums(const struct plan *p, uint32_t before)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS && p->row->outputs[i] && p->row->outputs[i] != before; i++)
        n += plan_is_added_up(p, p->row->outputs[i]);
    return n;
}

/* The two thread blocks add up in memory, in turn (turns.c), or exchange halves of each tile in the place of the output, once in a chunk
 * (lower/walk_cluster.c). */
static bool check_sum(const struct plan *p)
{
    if (p->adds == TG_MEMBER && p->cluster != p->along[TG_MEMBER])
        return refuse(p, "take TG_P for dqk and dhv", "a cluster that adds up heads has no other neighbours");
    if (p->adds == TG_MEMBER && p->along[TG_MEMBER] != 2)
        return refuse(p, "let a row of its own sum over heads", "a cluster adds up the two heads of a group, not more");
    return (p->along[p->adds] == 2 && p->tiles == 1) ||
           refuse(p, "take TG_P, or another block",
                  "a cluster is of two thread blocks, each with one tile of 64 columns for each four warps");
}

/* Blocks of the grid that follow one another, and as many of each dimension in every cluster. */
static bool check_neighbours(const struct plan *p)
{
    const bool parted =
        p->along[TG_DQK] > 1 && p->row->row[TG_DHV].role == TG_ROLE_P && plan_blocks(p, TG_DHV) != p->along[TG_DHV];
    for (uint32_t d = 1; d < TG_N_DIMS; d++)
        if (p->along[d] > 1 && plan_blocks(p, d) % p->along[d])
            return refuse(p, "take TG_P, or another block", "its thread blocks cannot be dealt out to clusters");
    if (p->cluster > TG_MAX_CLUSTER)
        return refuse(p, "let fewer thread blocks share", "a cluster is of at most 8 thread blocks");
    return !parted ||
           refuse(p, "let all blocks of dhv be in it, or take TG_P",
                  "neighbours of dqk are no neighbours in the grid, for dhv has more blocks than are in the cluster");
}

static bool check_loads(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        if (plan_is_loaded(v) && v->extent[1] / WALK_TILE % plan_sharers(p, v)) {
            plan_refuse(p, "TG0518", "take TG_P, or let fewer thread blocks share",
                        "kernel %s on warpgroups: %u columns of %s cannot be shared out to %u thread blocks by 64",
                        p->row->name, v->extent[1], plan_tensor(p, v)->name, plan_sharers(p, v));
            return false;
        }
    }
    return true;
}

bool plan_check_cluster(const struct plan *p)
{
    return !p->cluster || ((!p->adds || check_sum(p)) && check_neighbours(p) && check_loads(p));
}
