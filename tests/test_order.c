/* test_order.c - what the roles of a kernel on warpgroups execute: every built-in walk's order is verified, and one without any
 * single wait, barrier, fence, load or definition of it is not, nor one that waits for less. The same of the waits and barriers of
 * rings of kernels of mma.sync, and of the loads of loops without products. test_order [--only TEXT] */
#include "compiler/plan.h"
#include "compiler/plan_thread.h"
#include "compiler/plan_walk.h"
#include "dsl/fields.h"
#include "kernels/tap.h"
#include "variants/variants.h"

#include <stdlib.h>
#include <string.h>

static bool is_needed(const struct op *op)
{
    static const uint8_t kinds[] = {OP_TOTAL,  OP_LOAD,     OP_INIT,    OP_ENTER,   OP_MAP,     OP_CONTRACT, OP_DOT,
                                    OP_FETCH,  OP_PUT,      OP_EXPECT,  OP_AWAIT,   OP_BARRIER, OP_FENCE,    OP_COPY,
                                    OP_ARRIVE, OP_HEADS,    OP_REST,    OP_TAKE,    OP_PASS,    OP_ADD_UP,   OP_BEGIN,
                                    OP_SCALE,  OP_CATCH_UP, OP_FACTORS, OP_MULTIPLY};
    return memchr(kinds, op->kind, sizeof kinds) != NULL;
}

static bool stores_from_shared(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_PUT && p->values[p->ops[i].v].space == SPACE_FRAGMENT)
            return true;
    return false;
}

/* What is only added to something, and waits for stores where there are none. */
static bool may_be_missing(const struct plan *p, const struct op *op)
{
    const bool adds = (op->kind == OP_DOT && plan_is_carried(&p->values[op->v])) ||
                      (op->kind == OP_CONTRACT && op->flags & OP_ONTO && op->v == p->state);
    const bool waits = op->kind == OP_AWAIT && (op->sync == SYNC_READ || op->sync == SYNC_WRITTEN);
    return adds || (waits && !stores_from_shared(p));
}

typedef bool verifier(const struct plan *p);

static bool verify_rings(const struct plan *p)
{
    return plan_verify(p, "budget");
}

static void leave_out(struct plan *p, uint32_t at, verifier *verify)
{
    const struct op op = p->ops[at];
    memmove(&p->ops[at], &p->ops[at + 1], (p->n_ops - at - 1) * sizeof op);
    p->n_ops--;
    const tg_sink quiet = {0}, *loud = p->sink;
    p->sink = &quiet;
    tap_expect(!verify(p), "%s: without operation %u (kind %u) it is still accepted", p->name, at, op.kind);
    memmove(&p->ops[at + 1], &p->ops[at], (p->n_ops - at) * sizeof op);
    p->ops[at] = op;
    p->n_ops++;
    p->sink = loud;
}

/* A wait for a product that leaves one more under way than were issued later. */
static void wait_too_short(struct plan *p, uint32_t at)
{
    const tg_sink quiet = {0}, *loud = p->sink;
    p->sink = &quiet;
    p->ops[at].n++;
    tap_expect(!plan_verify_order(p), "%s: operation %u may wait for less", p->name, at);
    p->ops[at].n--;
    p->sink = loud;
}

/* Exponentials that the next map takes, and nobody has left, or others. */
static void leave_none(struct plan *p, uint32_t at)
{
    const tg_sink quiet = {0}, *loud = p->sink;
    struct value *v = &p->values[p->ops[at].v];
    const uint8_t rows = v->dims[0];
    p->sink = &quiet;
    p->ops[at].n = 0;
    tap_expect(!plan_verify_order(p), "%s: operation %u need not leave exponentials", p->name, at);
    p->ops[at].n = EXPONENTIALS_KEPT;
    v->dims[0] = v->dims[1];
    tap_expect(!plan_verify_order(p), "%s: operation %u may leave those of other positions", p->name, at);
    v->dims[0] = rows;
    p->sink = loud;
}

/* The stage of the step before, left for each tile and not once. */
static void leave_for_each(struct plan *p, uint32_t at)
{
    const tg_sink quiet = {0}, *loud = p->sink;
    p->sink = &quiet;
    p->ops[at].guard = GUARD_ALWAYS;
    tap_expect(!plan_verify_order(p), "%s: operation %u may leave a stage more than once", p->name, at);
    p->ops[at].guard = GUARD_FIRST;
    p->sink = loud;
}

/* Rows may be refused, but not by a check of what the compiler itself has done. */
static void fail_if_defect(void *user, const tg_diag *diag)
{
    (void)user;
    tap_expect(!diag->code || strcmp(diag->code, "TG0599") != 0, "%s", diag->message);
}

static bool verify_rounds(const struct plan *p)
{
    return plan_verify(p, "rounds");
}

/* In a step of a walk over chunks, behind the stores of the one before. */
static bool waits_for_load(const struct plan *p, const struct op *op)
{
    const int n = p->values[op->v].nest;
    return n >= 0 && p->nests[n].n_loops == 1 && p->nests[n].loops[0].dim == TG_CHUNK && p->nests[n].steps > 1 &&
           !p->nests[n].shared_out && !(op->flags & OP_AHEAD);
}

/* What loops of a kernel without matrix products load. */
static uint32_t check_rounds(struct plan *p)
{
    uint32_t n = 0;
    bool in_nest = false;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        in_nest = p->ops[i].kind == OP_NEST || (in_nest && p->ops[i].kind != OP_END);
        if (!in_nest || p->ops[i].kind != OP_LOAD || p->ops[i].flags & OP_ONCE)
            continue;
        tap_expect(!waits_for_load(p, &p->ops[i]), "%s: operation %u loads in a step of a walk", p->name, i);
        leave_out(p, i, verify_rounds);
        n++;
    }
    return n;
}

static uint32_t check_rings(const tg_schedule *schedule, const tg_shape_class *shape, struct plan *p)
{
    static struct tg_slices slices;
    const tg_sink sink = {fail_if_defect, NULL};
    uint32_t n = 0;
    tg_schedule_slice(schedule, schedule->n_rows, &slices);
    for (uint32_t row = 0; row < schedule->n_rows; row++) {
        if (schedule->rows[row].mma == TG_MMA_WGMMA ||
            !plan_build(p, schedule, &slices, row, tg_target_find("sm_90a"), shape, &sink))
            continue;
        if (schedule->rows[row].mma == TG_MMA_NONE) {
            n += check_rounds(p);
            continue;
        }
        for (uint32_t i = 0; i < p->n_ops; i++)
            if (p->ops[i].kind == OP_WAIT || p->ops[i].kind == OP_BARRIER) {
                leave_out(p, i, verify_rings);
                n++;
            }
    }
    return n;
}

static void check_operations(struct plan *p)
{
    tap_expect(plan_verify_order(p), "%s: refused", p->name);
    for (uint32_t i = 0; i < p->n_ops; i++) {
        if (is_needed(&p->ops[i]) && !may_be_missing(p, &p->ops[i]))
            leave_out(p, i, plan_verify_order);
        if (p->ops[i].kind == OP_AWAIT && p->ops[i].n > 0)
            wait_too_short(p, i);
        if (p->ops[i].kind == OP_ARRIVE && p->ops[i].sync == SYNC_BEHIND && p->ops[i].guard == GUARD_FIRST)
            leave_for_each(p, i);
        if (p->ops[i].kind == OP_MAP && p->ops[i].n == EXPONENTIALS_KEPT)
            leave_none(p, i);
    }
}

static uint32_t check_schedule(const tg_schedule *schedule, const tg_shape_class *shape, struct plan *p)
{
    static struct tg_slices slices;
    const tg_sink sink = {fail_if_defect, NULL};
    uint32_t n = 0;
    tg_schedule_slice(schedule, schedule->n_rows, &slices);
    for (uint32_t row = 0; row < schedule->n_rows; row++) {
        if (schedule->rows[row].mma != TG_MMA_WGMMA ||
            !plan_build(p, schedule, &slices, row, tg_target_find("sm_90a"), shape, &sink))
            continue;
        n++;
        check_operations(p);
        struct plan *decayed = p->ways.any ? malloc(sizeof *decayed) : NULL;
        if (decayed && tap_expect(plan_build_decayed(p, decayed), "%s: its other way is refused", p->name))
            check_operations(decayed);
        free(decayed);
    }
    return n;
}

static bool has_walks(const tg_variant *variant)
{
    tg_schedule s;
    for (uint32_t i = 0; tg_variant_schedule(variant, i, &s); i++)
        for (uint32_t row = 0; row < s.n_rows; row++)
            if (s.rows[row].mma == TG_MMA_WGMMA)
                return true;
    return false;
}

static void check_variant(const tg_variant *variant, const char *direction)
{
    static const uint32_t widths[][2] = {{128, 256}, {256, 512}, {128, 64}, {128, 128}, {64, 64}};
    struct plan *p = malloc(sizeof *p);
    if (p && has_walks(variant) &&
        tap_begin("every operation of the walks of %s%s is needed", variant->name, direction)) {
        uint32_t n = 0;
        tg_schedule s;
        for (uint32_t at = 0; tg_variant_schedule(variant, at, &s); at++)
            for (uint32_t i = 0; i < 3 * sizeof widths / sizeof *widths; i++) {
                const tg_shape_class shape = {.io = TG_BF16,
                                              .dqk = widths[i / 3][0],
                                              .dhv = widths[i / 3][1],
                                              .group = i == 7   ? 2
                                                       : i == 6 ? 4
                                                                : 1,
                                              .packed = i % 3 == 1,
                                              .pooled = i % 3 == 2};
                n += check_schedule(&s, &shape, p);
            }
        tap_expect(n > 0, "no walk");
        tap_end();
    }
    free(p);
}

static void check_rings_of(const tg_variant *variant, const char *direction)
{
    struct plan *p = malloc(sizeof *p);
    if (p && tap_begin("every wait and barrier of the rings of %s%s is needed", variant->name, direction)) {
        uint32_t n = 0;
        tg_schedule s;
        for (uint32_t at = 0; tg_variant_schedule(variant, at, &s); at++)
            for (uint32_t dqk = 128; dqk <= 192; dqk += 64)
                n += check_rings(&s, &(tg_shape_class){.io = TG_BF16, .dqk = dqk, .dhv = 128, .group = 1}, p);
        tap_expect(n > 0, "no ring");
        tap_end();
    }
    free(p);
}

/* ---- what passes make of a row ---- */

static bool build_row(struct plan *p, const tg_variant *variant, const char *text, const char *row,
                      const tg_shape_class *shape)
{
    static struct tg_slices slices;
    static tg_schedule s;
    const tg_sink quiet = {0};
    if (tg_variant_schedule_named(variant, text, &s, &quiet) != TG_OK)
        return false;
    tg_schedule_slice(&s, s.n_rows, &slices);
    return plan_build(p, &s, &slices, (uint32_t)tg_row_named(&s, row), tg_target_find("sm_90a"), shape, &quiet);
}

/* Three where there is room, and what a row says. */
static void check_stages(struct plan *p)
{
    static const struct {
        const char *variant, *schedule;
        uint32_t dhv, stages;
    } cases[] = {{"lightning", "walk", 128, 3},
                 {"lightning", "walk", 256, 2},
                 {"lightning", "walk dQ.stages=2", 128, 2},
                 {"mlstm-exp", "walk-n", 128, 3},
                 {"mlstm-exp", "segments", 256, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_shape_class shape = {.io = TG_BF16, .dqk = 128, .dhv = cases[i].dhv, .group = 1};
        const tg_variant *variant = tg_variant_find(cases[i].variant)->backward;
        const bool built = build_row(p, variant, cases[i].schedule, "dQ", &shape);
        tap_expect(built && p->nests[0].stages == cases[i].stages, "%s %s, dhv %u: not %u stages", cases[i].variant,
                   cases[i].schedule, cases[i].dhv, cases[i].stages);
    }
}

/* Where outputs go, and when the stage of the step before is left: before the store of this one, or with its first products. */
static void check_outputs(struct plan *p)
{
    static const struct {
        const char *variant, *schedule;
        uint32_t width, stages;
        bool apart, is_late;
    } cases[] = {{"kda", "walk-narrow", 128, 3, true, false}, /* one group: in buffers of their own */
                 {"kda", "walk-narrow walk.stages=2", 128, 2, true, false},
                 {"kda", "walk-narrow", 64, 2, true, false}, /* three stages would take a thread block's room */
                 {"kda", "walk", 128, 2, false, false},
                 {"gated-delta", "walk", 128, 3, false, true},
                 {"gated-delta", "walk-narrow", 128, 3, false, true}}; /* with makers */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_shape_class shape = {.io = TG_BF16, .dqk = cases[i].width, .dhv = cases[i].width, .group = 1};
        const bool built = build_row(p, tg_variant_find(cases[i].variant), cases[i].schedule, "walk", &shape);
        bool awaited = false, is_late = false;
        for (uint32_t k = 0; built && k < p->n_ops; k++) {
            awaited |= p->ops[k].role == ROLE_WALK && p->ops[k].kind == OP_AWAIT && p->ops[k].sync == SYNC_PRODUCT;
            is_late |= p->ops[k].sync == SYNC_BEHIND && awaited;
        }
        tap_expect(built && p->nests[0].stages == cases[i].stages && p->apart == cases[i].apart &&
                       is_late == cases[i].is_late,
                   "%s %s, width %u: %u stages, apart %d, late %d", cases[i].variant, cases[i].schedule, cases[i].width,
                   built ? p->nests[0].stages : 0, built && p->apart, is_late);
    }
}

/* By the estimate of registers and by shared memory; what ptxas would take by itself is not asked. */
static void check_resident(struct plan *p)
{
    static const struct {
        const char *schedule;
        uint32_t dqk, dhv, resident;
    } cases[] = {{"walk-narrow", 64, 64, 2}, {"walk-narrow", 128, 128, 1}, {"walk", 128, 256, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_shape_class shape = {.io = TG_BF16, .dqk = cases[i].dqk, .dhv = cases[i].dhv, .group = 1};
        const bool built = build_row(p, &tg_simple_gla, cases[i].schedule, "walk", &shape);
        tap_expect(built && p->resident == cases[i].resident, "%s, dqk %u, dhv %u: not %u on a multiprocessor",
                   cases[i].schedule, cases[i].dqk, cases[i].dhv, cases[i].resident);
    }
}

/* Of several heads: whose chunks have another way, and what multiplies the sum in it, which left operands' factors are rounded, and which sums are diagonals. */
static void check_heads(struct plan *p)
{
    static const struct {
        const char *variant, *schedule, *row;
        tg_dtype io;
        bool decayed, of_rows;
        uint32_t rounded, diagonals;
    } cases[] = {{"mamba2", "walk-heads", "walk", TG_BF16, true, true, 1, 0},
                 {"mamba2", "walk-heads", "walk", TG_F16, false, false, 1, 0},
                 {"mamba2", "walk", "walk", TG_BF16, false, false, 0, 0},
                 {"mamba2", "walk-parts-heads", "dV", TG_BF16, true, false, 1, 0},
                 {"mamba2", "walk-parts-heads", "dQ", TG_BF16, true, false, 1, 0},
                 {"mamba2", "walk-parts-heads", "dK", TG_BF16, true, false, 1, 1},
                 {"mamba2", "walk-parts-heads", "dK", TG_F16, false, false, 1, 1},
                 {"lightning", "walk-parts-heads", "dV", TG_BF16, true, false, 1, 0},
                 {"lightning", "walk-parts-heads", "dK", TG_BF16, false, false, 1, 0},
                 {"simple-gla", "walk-heads", "walk", TG_BF16, true, true, 1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_shape_class shape = {.io = cases[i].io, .dqk = 128, .dhv = 64, .group = 4};
        const tg_variant *forward = tg_variant_find(cases[i].variant),
                         *variant = cases[i].row[0] == 'd' ? forward->backward : forward;
        const bool built = build_row(p, variant, cases[i].schedule, cases[i].row, &shape);
        uint32_t rounded = 0, diagonals = 0;
        if (built && cases[i].decayed) { /* the warps that load would wait for eight more registers a thread for ever */
            const tg_sink quiet = {0}, *loud = p->sink;
            p->sink = &quiet;
            p->roles[ROLE_LOAD].registers += 8;
            tap_expect(!plan_verify_order(p), "%s of %s: more registers than there are", cases[i].row,
                       cases[i].schedule);
            p->roles[ROLE_LOAD].registers -= 8;
            p->sink = loud;
        }
        for (uint32_t v = 0; built && v < p->n_values; v++)
            rounded += p->rounded[v] != 0;
        for (uint32_t k = 0; built && k < p->n_ops; k++)
            diagonals += plan_is_diagonal(p, &p->ops[k]);
        tap_expect(built && p->ways.any == cases[i].decayed && p->ways.of_rows == cases[i].of_rows,
                   "%s of %s: a chunk has%s another way", cases[i].row, cases[i].schedule, p->ways.any ? "" : " not");
        tap_expect(rounded == cases[i].rounded && diagonals == cases[i].diagonals,
                   "%s of %s: %u factors are rounded, %u sums are diagonals; not %u, %u", cases[i].row,
                   cases[i].schedule, rounded, diagonals, cases[i].rounded, cases[i].diagonals);
    }
}

/* Of two maps of positions by the same decay the second takes the first one's exponentials; other maps are by themselves. */
static void check_exponentials(struct plan *p)
{
    static const struct {
        const char *variant, *row;
        uint32_t taken;
    } cases[] = {{"gated-delta", "dQ", 1}, {"gated-delta", "dK", 1}, {"gated-delta", "dV", 0}, {"mlstm-sig", "dQ", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_shape_class shape = {.io = TG_BF16, .dqk = 128, .dhv = 128, .group = 1};
        const bool built = build_row(p, tg_variant_find(cases[i].variant)->backward, "walk", cases[i].row, &shape);
        uint32_t taken = 0;
        for (uint32_t k = 0; built && k < p->n_ops; k++)
            taken += p->ops[k].kind == OP_MAP && p->ops[k].n == EXPONENTIALS_TAKEN;
        tap_expect(built && taken == cases[i].taken, "%s %s: %u maps take exponentials, not %u", cases[i].variant,
                   cases[i].row, taken, cases[i].taken);
    }
}

/* A map of a product by the state reads its matrix before that begins; what products have on the left is fetched for these. */
static void check_fetched(struct plan *p)
{
    static const struct {
        const char *variant, *row;
        bool before;
    } cases[] = {{"gated-delta", "walk", true}, {"kda", "walk", true}, {"mlstm-sig", "walk", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_shape_class shape = {.io = TG_BF16, .dqk = 128, .dhv = 128, .group = 1};
        const bool built = build_row(p, tg_variant_find(cases[i].variant), "walk", cases[i].row, &shape);
        bool fetched = false, before = false;
        for (uint32_t k = 0; built && k < p->n_ops; k++) {
            before |= fetched && p->ops[k].kind == OP_CONTRACT && p->ops[k].a == p->state;
            fetched |= p->ops[k].kind == OP_FETCH && !(p->ops[k].flags & OP_CAREFUL);
        }
        tap_expect(built && before == cases[i].before, "%s %s: %s is fetched before its products by the state",
                   cases[i].variant, cases[i].row, before ? "something" : "nothing");
    }
}

/* What the state behind a segment meets: once, by all warps, and stored when all have made their part. */
static void check_met(struct plan *p)
{
    const tg_shape_class shape = {.io = TG_BF16, .dqk = 128, .dhv = 128, .group = 2};
    const bool built = build_row(p, tg_variant_find("gated-delta")->backward, "segments-all-paired", "dQ", &shape);
    uint32_t at = 0;
    for (uint32_t i = 0; built && i < p->n_ops; i++)
        at = p->ops[i].kind == OP_MEET ? i : at;
    if (!tap_expect(built && at && p->ops[at + 1].kind == OP_BARRIER, "dQ meets no states, and no barrier is behind"))
        return;
    leave_out(p, at, plan_verify_order);
    leave_out(p, at + 1, plan_verify_order);
}

static uint32_t count_early(struct plan *p, const char *variant, const char *schedule, uint32_t tokens)
{
    const tg_shape_class shape = {.io = TG_BF16, .dqk = 128, .dhv = 128, .group = 1, .tokens = tokens};
    const bool built = build_row(p, tg_variant_find(variant), schedule, "step", &shape);
    uint32_t n = 0;
    tap_expect(built, "%s %s: refused", variant, schedule);
    for (uint32_t i = 0; built && i < p->n_ops; i++)
        n += p->ops[i].kind == OP_MAP && plan_is_early(p, &p->ops[i]);
    return n;
}

/* What is of a token alone, where there are several. */
static void check_early(struct plan *p)
{
    tap_expect(count_early(p, "mlstm-sig", "step8", 8) > 0, "maps of a token are made in the walk");
    tap_expect(count_early(p, "mlstm-sig", "step", 1) == 0, "one token has a barrier for one map of a row");
}

static void check_row(const char *name, void check(struct plan *p))
{
    struct plan *p = malloc(sizeof *p);
    if (p && tap_begin("%s", name)) {
        check(p);
        tap_end();
    }
    free(p);
}

int main(int argc, char **argv)
{
    if (!tap_arguments(argc, argv))
        return 2;
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++) {
        check_variant(*v, "");
        check_rings_of(*v, "");
        if ((*v)->backward) {
            check_variant((*v)->backward, ", backward");
            check_rings_of((*v)->backward, ", backward");
        }
    }
    check_row("stages are three where there is room", check_stages);
    check_row("outputs are apart, or their stage is left late, where there is room", check_outputs);
    check_row("as many walks as there is room for are on a multiprocessor", check_resident);
    check_row("maps of tokens are made before their walk", check_early);
    check_row("factors and sums of several heads are made where they cost least", check_heads);
    check_row("exponentials that two maps have alike are made once", check_exponentials);
    check_row("what maps read is fetched before the products that they are of", check_fetched);
    check_row("states behind segments meet those that arrive there", check_met);
    return tap_finish();
}
