/* wgmma.c - wgmma and setmaxnreg: what the four warps of a warpgroup do together.
 *
 * Each warpgroup has a log of its operations. The first warp to come writes an entry, the others
 * must do the same, in the same order. An mma is executed, for all four, when a warp waits for it
 * and all have issued it. From its issue on nobody may write its operands in shared memory, and
 * until a warp has waited for it that warp may not touch its registers. That one warp has waited
 * means that the whole has read its operands: that warp may tell others so. */
#include "float_bits.h"
#include "hopper.h"

#include <stdio.h>
#include <stdlib.h>

#define RUN(id)                                                                                                        \
    insn_run run_##id;                                                                                                 \
    void run_##id(struct warp *w, const struct insn *in, u32 mask)

bool wgmma_init(struct cta *c)
{
    struct hopper *h = c->hopper;
    bool ok = true;
    h->n_warpgroups = (c->n_warps + 3) / 4;
    for (u32 i = 0; i < c->n_warps && c->kernel->n_wgmma_rows; i++)
        ok &= (h->held[i] = calloc(c->kernel->n_wgmma_rows, sizeof *h->held[i])) != NULL;
    if (c->kernel->n_wgmma_rows)
        ok &=
            (h->wgmma_read = calloc((size_t)(c->shared_bytes / ASYNC_UNIT + 1) * h->n_warpgroups, sizeof(u32))) != NULL;
    return ok;
}

static void forget(struct warpgroup *g, u32 n)
{
    for (u32 i = 0; i < n; i++)
        free(g->log[i].operands);
    memmove(g->log, g->log + n, (g->n - n) * sizeof *g->log);
    g->first += n;
    g->n -= n;
}

void wgmma_reset(struct cta *c)
{
    struct hopper *h = c->hopper;
    for (u32 i = 0; i < h->n_warpgroups; i++) {
        struct warpgroup *g = &h->warpgroups[i];
        if (g->n)
            forget(g, g->n);
        *g = (struct warpgroup){.log = g->log, .capacity = g->capacity};
    }
    for (u32 i = 0; i < c->n_warps && h->held[i]; i++)
        memset(h->held[i], 0, c->kernel->n_wgmma_rows * sizeof *h->held[i]);
    if (h->wgmma_read)
        memset(h->wgmma_read, 0, (size_t)(c->shared_bytes / ASYNC_UNIT + 1) * h->n_warpgroups * sizeof(u32));
    memset(h->has_fenced, 0, sizeof h->has_fenced);
    memset(h->waits_for_warps, 0, sizeof h->waits_for_warps);
}

void wgmma_free(struct cta *c)
{
    struct hopper *h = c->hopper;
    for (u32 i = 0; i < h->n_warpgroups; i++) {
        if (h->warpgroups[i].n)
            forget(&h->warpgroups[i], h->warpgroups[i].n);
        free(h->warpgroups[i].log);
    }
    for (u32 i = 0; i < c->n_warps; i++)
        free(h->held[i]);
    free(h->wgmma_read);
}

static struct warpgroup *group_of(const struct warp *w)
{
    return &w->cta->hopper->warpgroups[w->id / 4];
}

static struct wgmma_op *op_at(const struct warpgroup *g, u32 index)
{
    return &g->log[index - g->first];
}

/* -- the log --------------------------------------------------------------------------------- */

static bool is_whole(struct warp *w, const struct insn *in, u32 mask)
{
    const struct cta *c = w->cta;
    if (!is_convergent(w, in, mask))
        return false;
    if (w->id / 4 * 4 + 4 <= c->n_warps)
        return true;
    fault(w, REPORT_WGMMA, ALL_LANES, "a warpgroup is four warps, the first a multiple of four; the CTA has %u warps",
          c->n_warps);
    return false;
}

static void drop_old(struct warpgroup *g)
{
    u32 least = g->executed;
    for (u32 i = 0; i < 4; i++)
        least = g->retired[i] < least ? g->retired[i] : least;
    if (least - g->first > 256)
        forget(g, least - g->first);
}

static void wake(struct cta *c, u32 group)
{
    for (u32 i = 4 * group; i < 4 * group + 4; i++) {
        if (!c->hopper->waits_for_warps[i])
            continue;
        c->warps[i].is_blocked = false;
        c->hopper->waits_for_warps[i] = false;
    }
}

static void append(struct warpgroup *g, const struct wgmma_op *op)
{
    if (g->n == g->capacity) {
        g->capacity = g->capacity ? 2 * g->capacity : 64;
        g->log = realloc(g->log, g->capacity * sizeof *g->log);
        if (!g->log)
            abort();
    }
    g->log[g->n++] = *op;
}

/* The warp's next operation, which is this one. NULL after a fault. */
static struct wgmma_op *advance(struct warp *w, const struct wgmma_op *now)
{
    struct warpgroup *g = group_of(w);
    const u32 index = g->position[w->id % 4];
    char insn[320];
    if (index == g->first + g->n) {
        drop_old(g);
        append(g, now);
    }
    struct wgmma_op *op = op_at(g, index);
    if (op->at != now->at) {
        describe_insn(insn, sizeof insn, w->kernel, op->at);
        fault(w, REPORT_WGMMA, ALL_LANES,
              "another warp of the warpgroup executes something else in its place\n    at %s", insn);
        return NULL;
    }
    if (op->a != now->a || op->b != now->b || op->scale_d != now->scale_d) {
        fault(w, REPORT_WGMMA, ALL_LANES,
              "the warps of the warpgroup disagree: descriptors 0x%llx, 0x%llx and scale-d %u here, "
              "0x%llx, 0x%llx and %u in another warp",
              (unsigned long long)now->a, (unsigned long long)now->b, now->scale_d, (unsigned long long)op->a,
              (unsigned long long)op->b, op->scale_d);
        return NULL;
    }
    g->position[w->id % 4]++;
    wake(w->cta, w->id / 4);
    w->cta->cluster->idle_polls = 0;
    return op;
}

static bool log_plain(struct warp *w, const struct insn *in, u32 mask, enum wgmma_kind kind)
{
    return is_whole(w, in, mask) && advance(w, &(struct wgmma_op){.kind = kind, .at = in->serial}) != NULL;
}

/* -- registers ------------------------------------------------------------------------------- */

static void report_held(struct warp *w, u32 op)
{
    char insn[320];
    describe_insn(insn, sizeof insn, w->kernel, op_at(group_of(w), op)->at);
    fault(w, REPORT_WGMMA, ALL_LANES,
          "touches a register of a wgmma that no wgmma.wait_group of this warp covers yet\n    at %s", insn);
}

/* Of all insns but wgmma.mma_async. */
bool wgmma_lets_touch(struct warp *w, const struct insn *in)
{
    struct held *held = w->cta->hopper->held[w->id];
    for (u32 i = 0; i < in->n_touched; i++) {
        struct held *r = &held[in->touched[i]];
        if (r->op) {
            report_held(w, r->op - 1);
            return false;
        }
        r->touched = in->serial + 1;
    }
    return true;
}

static bool report_unfenced(struct warp *w, const struct held *r)
{
    char insn[320];
    describe_insn(insn, sizeof insn, w->kernel, r->touched - 1);
    fault(w, REPORT_WGMMA, ALL_LANES, "has a register that was touched after the last wgmma.fence\n    at %s", insn);
    return false;
}

/* The first n of the registers are accumulators, the others hold A. */
static bool take_registers(struct warp *w, const struct insn *in, u32 n, u32 op)
{
    struct hopper *h = w->cta->hopper;
    if (!h->has_fenced[w->id]) {
        fault(w, REPORT_WGMMA, ALL_LANES, "no wgmma.fence has come before the first wgmma");
        return false;
    }
    for (u32 i = 0; i < in->n_touched; i++) {
        struct held *r = &h->held[w->id][in->touched[i]];
        const bool is_accumulator = i < n;
        if (r->touched)
            return report_unfenced(w, r);
        if (is_accumulator && r->shape && r->shape != n) {
            fault(w, REPORT_WGMMA, ALL_LANES,
                  "accumulates where a wgmma of another shape did, with no wgmma.fence between");
            return false;
        }
        if (r->op && (is_accumulator != r->is_accumulator)) {
            report_held(w, r->op - 1);
            return false;
        }
        r->op = op + 1;
        r->is_accumulator = is_accumulator;
        r->shape = is_accumulator ? (u16)n : 0;
    }
    return true;
}

static void release_registers(struct warp *w, u32 limit)
{
    struct held *held = w->cta->hopper->held[w->id];
    for (u32 i = 0; i < w->kernel->n_wgmma_rows; i++)
        if (held[i].op && held[i].op <= limit)
            held[i].op = 0;
}

RUN(wgmma_fence)
{
    struct hopper *h = w->cta->hopper;
    if (!log_plain(w, in, mask, WGMMA_FENCE))
        return;
    h->has_fenced[w->id] = true;
    for (u32 i = 0; i < w->kernel->n_wgmma_rows; i++) {
        h->held[w->id][i].touched = 0;
        h->held[w->id][i].shape = 0;
    }
}

/* -- the operands of an mma ------------------------------------------------------------------ */

#define SIGN 0x80000000u

/* A decoded wgmma.mma_async. */
struct mma {
    const struct insn *in;
    u32 n, depth, type;
    bool has_a; /* in shared memory; else in four registers */
    struct matrix a, b;
    bool negates_a, negates_b, scale_d;
    const u32 *registers; /* operands of A */
};

static struct mma decode(const struct warp *w, const struct insn *in, u32 type, bool has_a)
{
    struct mma m = {.in = in, .type = type, .has_a = has_a};
    m.n = 8u * (in->mod[MOD_WGMMA16] + in->mod[MOD_WGMMA8]);
    m.depth = type == TYPE_TF32 ? 8 : 16;
    const u32 *op = in->op + m.n / 2;
    m.registers = op;
    op += has_a ? 1 : 4;
    if (has_a)
        m.a = (struct matrix){.descriptor = row64(w, m.registers[0])[0], .lines = 64};
    m.b = (struct matrix){.descriptor = row64(w, op[0])[0], .lines = m.n};
    m.scale_d = pred_get(w, op[1]) & 1;
    m.negates_a = op[2] == 0xffffffffu;
    m.negates_b = op[3] == 0xffffffffu;
    if (type != TYPE_TF32 && has_a)
        m.a.is_lines_first = op[4];
    if (type != TYPE_TF32)
        m.b.is_lines_first = op[4 + has_a];
    return m;
}

static bool is_uniform(struct warp *w, const u64 *row, const char *what)
{
    for (u32 l = 1; l < LANES; l++)
        if (row[l] != row[0]) {
            fault(w, REPORT_WGMMA, (int)l, "the lanes of the warp disagree on the descriptor of %s", what);
            return false;
        }
    return true;
}

static bool are_lanes_agreed(struct warp *w, const struct mma *m)
{
    const u32 *op = m->registers + (m->has_a ? 1 : 4), scale = pred_get(w, op[1]);
    if (m->has_a && !is_uniform(w, row64(w, m->registers[0]), "A"))
        return false;
    if (!is_uniform(w, row64(w, op[0]), "B"))
        return false;
    if (scale && scale != FULL_MASK)
        fault(w, REPORT_WGMMA, ALL_LANES, "the lanes of the warp disagree on scale-d");
    return w->event != EVENT_FAULT;
}

static bool check_descriptor(struct warp *w, u64 descriptor, const char *name)
{
    const u64 unused = 3ull << 14 | 3ull << 30 | 7ull << 46 | 0x3ffull << 52;
    if (!(descriptor & unused))
        return true;
    fault(w, REPORT_WGMMA, ALL_LANES, "the descriptor of %s, 0x%llx, has bits that mean nothing", name,
          (unsigned long long)descriptor);
    return false;
}

/* Finds the matrix's places. */
static bool locate(struct warp *w, const struct matrix *m, const char *name, struct operand_units *units)
{
    const u32 bytes = w->cta->shared_bytes;
    if (!check_descriptor(w, m->descriptor, name))
        return false;
    units->n = matrix_units(m, units->offset);
    for (u32 i = 0; i < units->n; i++) {
        const u32 offset = units->offset[i] -= SHARED_BASE;
        if (offset < bytes && ASYNC_UNIT <= bytes - offset)
            continue;
        fault(w, REPORT_OUT_OF_BOUNDS, ALL_LANES,
              "the descriptor of %s, 0x%llx, leads to shared offset %lld; the CTA has %u bytes", name,
              (unsigned long long)m->descriptor, (long long)(s32)offset, bytes);
        return false;
    }
    return true;
}

/* The first warp looks at what lies there; the others at what it has found. */
static bool begin_reading(struct warp *w, const struct operand_units *units, struct origins *o)
{
    struct hopper *h = w->cta->hopper;
    for (u32 i = 0; i < units->n; i++)
        if (has_mbarrier(h, units->offset[i]) &&
            mbarrier_covers(w, w->cta, ALL_LANES, units->offset[i], ASYNC_UNIT, ACCESS_READ))
            return false;
    if (!proxy_add_origins(w, o, units))
        return false;
    for (u32 i = 0; i < units->n; i++)
        h->readers[units->offset[i] / ASYNC_UNIT]++;
    return true;
}

static struct operands *new_operands(void)
{
    struct operands *x = malloc(sizeof *x);
    if (!x)
        abort();
    x->a.n = x->b.n = x->origins.n = 0;
    x->origins.last = 0;
    return x;
}

static bool issue(struct warp *w, const struct mma *m, struct wgmma_op *op)
{
    if (!op->operands) {
        struct operands *x = op->operands = new_operands();
        if ((m->has_a && !locate(w, &m->a, "A", &x->a)) || !locate(w, &m->b, "B", &x->b) ||
            !begin_reading(w, &x->a, &x->origins) || !begin_reading(w, &x->b, &x->origins))
            return false;
        w->cta->counters->wgmma++;
    }
    return proxy_check_origins(w, &op->operands->origins);
}

static void mma(struct warp *w, const struct insn *in, u32 mask, u32 type, bool has_a)
{
    if (!is_whole(w, in, mask))
        return;
    const struct mma m = decode(w, in, type, has_a);
    const u32 index = group_of(w)->position[w->id % 4];
    if (!are_lanes_agreed(w, &m))
        return;
    struct wgmma_op *op = advance(
        w, &(struct wgmma_op){
               .kind = WGMMA_MMA, .at = in->serial, .scale_d = m.scale_d, .a = m.a.descriptor, .b = m.b.descriptor});
    if (op && take_registers(w, in, m.n / 2, index))
        issue(w, &m, op);
}

RUN(wgmma_bf16)
{
    mma(w, in, mask, TYPE_BF16, true);
}

RUN(wgmma_bf16_registers)
{
    mma(w, in, mask, TYPE_BF16, false);
}

RUN(wgmma_f16)
{
    mma(w, in, mask, TYPE_F16, true);
}

RUN(wgmma_f16_registers)
{
    mma(w, in, mask, TYPE_F16, false);
}

RUN(wgmma_tf32)
{
    mma(w, in, mask, TYPE_TF32, true);
}

RUN(wgmma_tf32_registers)
{
    mma(w, in, mask, TYPE_TF32, false);
}

/* -- execution ------------------------------------------------------------------------------- */

static struct mma decode_again(const struct warp *w, const struct wgmma_op *op)
{
    const struct insn *in = &w->kernel->code[op->at];
    const bool has_a = in->run == run_wgmma_bf16 || in->run == run_wgmma_f16 || in->run == run_wgmma_tf32;
    const u32 type = in->run == run_wgmma_bf16 || in->run == run_wgmma_bf16_registers ? TYPE_BF16
                     : in->run == run_wgmma_f16 || in->run == run_wgmma_f16_registers ? TYPE_F16
                                                                                      : TYPE_TF32;
    struct mma m = decode(w, in, type, has_a);
    m.a.descriptor = op->a;
    m.b.descriptor = op->b;
    m.scale_d = op->scale_d;
    return m;
}

/* A's fragments are those of mma.sync: matrix.c draws them. */
static void load_a_registers(const struct warp *w, const struct mma *m, struct wgmma_tiles *t)
{
    const u32 first = 16 * (w->id % 4);
    const float sign = m->negates_a ? -1.0f : 1.0f;
    for (u32 r = 0; r < 4; r++) {
        const u32 *row = row32(w, m->registers[r]);
        for (u32 l = 0; l < LANES; l++) {
            float *out = t->a[first + l / 4 + 8 * (r & 1)];
            if (m->type == TYPE_TF32) {
                out[l % 4 + 4 * (r >> 1)] = sign * bits_float(row[l] & ~0x1fffu);
                continue;
            }
            out += l % 4 * 2 + 8 * (r >> 1);
            out[0] = sign * (m->type == TYPE_F16 ? half_to_float((u16)row[l]) : bits_float(row[l] << 16));
            out[1] =
                sign * (m->type == TYPE_F16 ? half_to_float((u16)(row[l] >> 16)) : bits_float(row[l] & 0xffff0000u));
        }
    }
}

static void end_reading(struct cta *c, u32 group, const struct operand_units *units)
{
    struct hopper *h = c->hopper;
    for (u32 i = 0; i < units->n; i++) {
        const u32 unit = units->offset[i] / ASYNC_UNIT;
        h->readers[unit]--;
        h->wgmma_read[unit * h->n_warpgroups + group] = c->cluster->now;
    }
}

/* The warp's accumulators, at zero if they do not count. */
static void find_accumulators(const struct warp *w, const struct mma *m, float **d)
{
    for (u32 r = 0; r < m->n / 2; r++) {
        d[r] = (float *)(void *)row32(w, m->in->op[r]);
        if (!m->scale_d)
            memset(d[r], 0, LANES * sizeof(float));
    }
}

static void execute(struct cta *c, u32 group, struct wgmma_op *op)
{
    struct wgmma_tiles t;
    float *d[4][128];
    const struct warp *w = &c->warps[4 * group];
    const struct mma m = decode_again(w, op);
    if (m.has_a)
        matrix_load_a(c, &op->operands->a, &m.a, m.type, m.negates_a ? SIGN : 0, t.a);
    matrix_load_b(c, &op->operands->b, &m.b, m.type, m.negates_b ? SIGN : 0, t.b);
    for (u32 i = 0; i < 4; i++) {
        find_accumulators(&w[i], &m, d[i]);
        if (!m.has_a)
            load_a_registers(&w[i], &m, &t);
    }
    wgmma_multiply(&t, m.depth, m.n, d);
    end_reading(c, group, &op->operands->a);
    end_reading(c, group, &op->operands->b);
    op->time = c->cluster->now;
}

/* -- groups ---------------------------------------------------------------------------------- */

RUN(wgmma_commit)
{
    log_plain(w, in, mask, WGMMA_COMMIT);
}

/* What wait_group `keep` waits for: all operations before this index. */
static u32 due(const struct warp *w, u32 keep)
{
    const struct warpgroup *g = group_of(w);
    u32 index = g->position[w->id % 4];
    for (u32 n = 0; index-- > g->retired[w->id % 4];)
        if (op_at(g, index)->kind == WGMMA_COMMIT && n++ == keep)
            return index + 1;
    return g->retired[w->id % 4];
}

static bool have_all_issued(const struct warpgroup *g, u32 limit)
{
    for (u32 i = 0; i < 4; i++)
        if (g->position[i] < limit)
            return false;
    return true;
}

static void retire(struct warp *w, u32 limit)
{
    struct cta *c = w->cta;
    struct warpgroup *g = group_of(w);
    const u32 agent = agent_of(c, AGENT_WARPGROUP + w->id / 4);
    for (; g->executed < limit; g->executed++)
        if (op_at(g, g->executed)->kind == WGMMA_MMA)
            execute(c, w->id / 4, op_at(g, g->executed));
    c->cluster->now++;
    for (u32 i = g->retired[w->id % 4]; i < limit; i++)
        if (op_at(g, i)->time > w->seen[agent])
            w->seen[agent] = op_at(g, i)->time;
    g->retired[w->id % 4] = limit;
    release_registers(w, limit);
}

RUN(wgmma_wait)
{
    struct hopper *h = w->cta->hopper;
    const struct warpgroup *g = group_of(w);
    if (!is_whole(w, in, mask))
        return;
    const u32 limit = due(w, (u32)in->imm);
    if (!have_all_issued(g, limit)) {
        h->waits_for_warps[w->id] = true;
        w->is_blocked = true;
        w->pc = in->serial;
        w->event = EVENT_BLOCK;
    } else if (log_plain(w, in, mask, WGMMA_WAIT)) {
        retire(w, limit);
    }
}

RUN(setmaxnreg)
{
    if (in->imm < 24 || in->imm > 256 || in->imm % 8)
        fault(w, REPORT_WGMMA, ALL_LANES, "%lld registers; 24, 32 .. 256 are possible", (long long)in->imm);
    else
        log_plain(w, in, mask, WGMMA_REGISTERS);
}

/* -- writers --------------------------------------------------------------------------------- */

/* Whether the warp knows that wgmma has read these 16 bytes; else a fault. */
bool wgmma_lets_write(struct warp *w, const struct cta *c, int lane, u32 unit)
{
    const struct hopper *h = c->hopper;
    for (u32 g = 0; g < h->n_warpgroups; g++) {
        if (is_before(w, agent_of(c, AGENT_WARPGROUP + g), h->wgmma_read[unit * h->n_warpgroups + g]))
            continue;
        fault(w, REPORT_IN_FLIGHT, lane,
              "writes shared bytes %u..%u, which wgmma of warpgroup %u reads: no wgmma.wait_group by "
              "this warp, or by one that it has synchronised with since, comes before",
              unit * ASYNC_UNIT, (unit + 1) * ASYNC_UNIT - 1, g);
        return false;
    }
    return true;
}

static bool reads_unit(const struct operand_units *units, u32 unit)
{
    for (u32 i = 0; i < units->n; i++)
        if (units->offset[i] / ASYNC_UNIT == unit)
            return true;
    return false;
}

/* "by wgmma of warpgroup 1, which .." Whether one that is not executed reads there. */
bool wgmma_describe_reader(const struct cta *c, u32 unit, char *out, size_t size)
{
    char insn[320];
    for (u32 i = 0; i < c->hopper->n_warpgroups; i++) {
        const struct warpgroup *g = &c->hopper->warpgroups[i];
        for (u32 k = g->executed; k < g->first + g->n; k++) {
            const struct operands *x = op_at(g, k)->operands;
            if (!x || (!reads_unit(&x->a, unit) && !reads_unit(&x->b, unit)))
                continue;
            describe_insn(insn, sizeof insn, c->kernel, op_at(g, k)->at);
            snprintf(out, size, "by wgmma of warpgroup %u, for which no wgmma.wait_group has come, at %s", i, insn);
            return true;
        }
    }
    return false;
}

/* All warps have ended. */
void wgmma_end(struct cta *c)
{
    for (u32 i = 0; i < c->n_warps && !c->report->is_set; i++) {
        struct warp *w = &c->warps[i];
        const struct warpgroup *g = group_of(w);
        if (g->position[i % 4] != g->first + g->n) {
            w->at = &c->kernel->code[op_at(g, g->position[i % 4])->at];
            fault(w, REPORT_WGMMA, ALL_LANES,
                  "the warp has ended and has not executed this, as others of its warpgroup have");
        }
        for (u32 k = g->retired[i % 4]; k < g->position[i % 4] && !c->report->is_set; k++) {
            w->at = &c->kernel->code[op_at(g, k)->at];
            if (op_at(g, k)->kind == WGMMA_MMA)
                fault(w, REPORT_WGMMA, ALL_LANES, "the warp has ended, and no wgmma.wait_group of its covers this");
        }
    }
}
