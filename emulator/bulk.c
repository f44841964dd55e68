/* bulk.c - cp.async.bulk and its tensor forms, and st.async, as late and as disorderly as the memory model
 * allows.
 *
 * A load arrives at a time of its own: at random, or when no warp can go on. Its destination is in
 * flight from its issue to the end of the mbarrier's phase to which it brings its bytes; then the
 * bytes count as written by the mbarrier's agent, so only who has waited for that phase may touch
 * them. A store reads its source when it must, at wait_group.read, and until then nobody may write
 * there; it writes global memory at wait_group, or at the CTA's end. Half of all copies, at random,
 * move their bytes at once and stay marked.
 *
 * A load to several CTAs of a cluster is as many loads, each kept by the CTA that it goes to. One
 * from shared memory reads its source until its mbarrier's phase has ended; then it may be written
 * by who knows that. */
#include "hopper.h"

#include <stdio.h>
#include <stdlib.h>

#define RUN(id)                                                                                                        \
    insn_run run_##id;                                                                                                 \
    void run_##id(struct warp *w, const struct insn *in, u32 mask)

void bulk_reset(struct cta *c)
{
    struct hopper *h = c->hopper;
    for (u32 i = 0; i < h->stores.n; i++)
        free(h->stores.list[i].data);
    h->loads.n = h->stores.n = h->n_flying = 0;
    h->haste = (u32[]){0, 2, 16}[random_below(c, 3)];
    memset(h->group, 0, sizeof h->group);
    if (h->sent)
        memset(h->sent, 0, (c->shared_bytes / ASYNC_UNIT + 1) * sizeof *h->sent);
}

void bulk_free(struct cta *c)
{
    struct hopper *h = c->hopper;
    for (u32 i = 0; i < h->stores.n; i++)
        free(h->stores.list[i].data);
    free(h->loads.list);
    free(h->stores.list);
    free(h->sent);
}

static struct bulk *add(struct bulks *list, const struct bulk *b)
{
    if (list->n == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 64;
        list->list = realloc(list->list, list->capacity * sizeof *list->list);
        if (!list->list)
            abort();
    }
    list->list[list->n] = *b;
    return &list->list[list->n++];
}

static const struct bulk *find(const struct bulks *list, u32 offset)
{
    for (u32 i = 0; i < list->n; i++) {
        const struct bulk *b = &list->list[i];
        const bool is_over = b->kind != BULK_LOAD && b->is_done;
        if (offset - b->offset < b->bytes && !is_over)
            return b;
    }
    return NULL;
}

void bulk_describe_load(const struct cta *c, u32 offset, char *out, size_t size)
{
    const struct bulk *b = find(&c->hopper->loads, offset);
    char insn[320];
    *out = 0;
    if (!b)
        return;
    const struct mbarrier *m = &c->hopper->mbarriers[b->mbarrier];
    describe_insn(insn, sizeof insn, c->kernel, b->at);
    snprintf(out, size, "the copy of warp %u lane %u reports to the mbarrier at shared offset %u, at %s", b->warp->id,
             b->lane, m->offset, insn);
}

/* A load, from there, of any CTA of the cluster. */
static const struct bulk *find_sender(const struct cta *c, u32 offset)
{
    for (u32 r = 0; r < c->cluster->n; r++) {
        const struct bulks *loads = &c->cluster->cta[r]->hopper->loads;
        for (u32 i = 0; i < loads->n; i++)
            if (loads->list[i].source == c && offset - loads->list[i].from < loads->list[i].bytes)
                return &loads->list[i];
    }
    return NULL;
}

void bulk_describe_store(const struct cta *c, u32 offset, char *out, size_t size)
{
    const struct bulk *b = find(&c->hopper->stores, offset), *sender = find_sender(c, offset);
    char insn[320];
    *out = 0;
    if (sender) {
        describe_insn(insn, sizeof insn, c->kernel, sender->at);
        snprintf(out, size, "by a bulk copy to shared memory: its mbarrier's phase has not ended, at %s", insn);
    }
    if (!b)
        return;
    describe_insn(insn, sizeof insn, c->kernel, b->at);
    snprintf(out, size, "by a bulk copy of warp %u lane %u, which is %s, at %s", b->warp->id, b->lane,
             b->group == c->hopper->group[b->warp->id][b->lane]
                 ? "never committed"
                 : "committed, and no cp.async.bulk.wait_group by its thread covers it",
             insn);
}

/* -- checks at issue ------------------------------------------------------------------------- */

struct checking {
    struct warp *w;
    struct allocation *a;
    int lane;
};

/* Global memory of a piece: there, and for a load not another's. */
static bool check_piece(void *context, const struct bulk *b, const struct piece *p)
{
    struct checking *x = context;
    const u32 n = p->to - p->from;
    if (!n)
        return true;
    if (!x->a || p->global - x->a->base >= x->a->bytes || n > x->a->bytes - (p->global - x->a->base))
        x->a = memory_find(x->w->cta->launch->memory, p->global, n);
    if (!x->w->cta->has_waited) { /* which no kernel here does: a bulk copy would have to be marked where it lands */
        fault(x->w, REPORT_OVERLAP, x->lane, "touches global address 0x%llx before griddepcontrol.wait by a bulk copy",
              (unsigned long long)p->global);
        return false;
    }
    if (!x->a) {
        global_access(x->w, x->w->at, x->lane, p->global, n, 0); /* reports what is wrong */
        return false;
    }
    return b->kind != BULK_LOAD || owner_read(x->w, x->a, x->lane, p->global, n, 0);
}

static bool check_shared(struct warp *w, const struct bulk *b, u64 address, u32 align)
{
    struct cta *c = w->cta;
    const u64 offset = address - SHARED_BASE;
    if (offset >= c->shared_bytes || b->bytes > c->shared_bytes - offset) {
        fault(w, REPORT_OUT_OF_BOUNDS, (int)b->lane,
              "a bulk copy of %u bytes at shared offset %lld; the CTA has %u bytes", b->bytes, (long long)offset,
              c->shared_bytes);
        return false;
    }
    if (address & (align - 1)) {
        fault(w, REPORT_MISALIGNED, (int)b->lane, "a bulk copy at shared offset %llu, which is not a multiple of %u",
              (unsigned long long)offset, align);
        return false;
    }
    return true;
}

static bool check_plain(struct warp *w, const struct bulk *b, u64 address)
{
    if (!(address & 15) && !(b->bytes & 15) && b->bytes)
        return true;
    fault(w, REPORT_MISALIGNED, (int)b->lane, "a bulk copy of %u bytes at address 0x%llx: both must be multiples of 16",
          b->bytes, (unsigned long long)address);
    return false;
}

/* The CTA's shared memory from which it reads. */
static bool check_source(struct warp *w, const struct bulk *b, u32 offset)
{
    return !mbarrier_covers(w, w->cta, (int)b->lane, offset, b->bytes, ACCESS_READ) &&
           proxy_check_read(w, (int)b->lane, offset, b->bytes);
}

/* The map and the coordinates, from operand k on. */
static bool read_tensor(struct warp *w, const struct insn *in, u32 k, struct bulk *b)
{
    const u32 rank = in->mod[MOD_RANK];
    if (!tensor_map_read(w, (int)b->lane, address_of(w, in, k, (int)b->lane), &b->map))
        return false;
    const struct tensor_map *m = &b->map;
    if (m->rank != rank) {
        fault(w, REPORT_TENSOR_MAP, (int)b->lane, "the tensor map is of rank %u", m->rank);
        return false;
    }
    const u32 row = m->box[0] * m->element_bytes;
    if (m->swizzle && row != 16u * (m->swizzle + 1u)) {
        fault(w, REPORT_TENSOR_MAP, (int)b->lane,
              "a box with rows of %u bytes and a swizzle of %u; the emulator wants them equal", row,
              16u * (m->swizzle + 1u));
        return false;
    }
    for (u32 i = 0; i < rank; i++)
        b->coordinate[i] = (s32)row32(w, in->op[k + 2 + i])[b->lane];
    b->is_tensor = true;
    b->bytes = box_bytes(m);
    return box_check(w, b);
}

static struct bulk new_bulk(struct warp *w, const struct insn *in, u32 lane, enum bulk_kind kind)
{
    return (struct bulk){.kind = kind, .warp = w, .lane = lane, .at = in->serial, .is_early = random_below(w->cta, 2)};
}

/* -- loads ----------------------------------------------------------------------------------- */

static void copy_in(u8 *to, const u8 *from, u64 address, u32 n)
{
    while (n) {
        u32 unit = 8;
        while (unit > n || address & (unit - 1))
            unit /= 2;
        const u64 x = global_load(from, unit);
        memcpy(to, &x, unit);
        to += unit;
        from += unit;
        address += unit;
        n -= unit;
    }
}

static bool load_piece(void *context, const struct bulk *b, const struct piece *p)
{
    struct cta *c = context;
    u8 *to = c->shared + p->offset;
    memset(to, b->is_tensor && b->map.has_nan_fill ? 0xff : 0, ASYNC_UNIT);
    if (p->from == p->to)
        return true;
    const struct allocation *a = memory_find(c->launch->memory, p->global, p->to - p->from);
    copy_in(to + p->from, a->data + (p->global - a->base), p->global, p->to - p->from);
    return true;
}

static bool publish_piece(void *context, const struct bulk *b, const struct piece *p)
{
    struct cta *c = context;
    (void)b;
    if (p->from == p->to)
        return true;
    const struct allocation *a = memory_find(c->launch->memory, p->global, p->to - p->from);
    if (!global_is_written(a, p->global, p->to - p->from))
        shared_mark_unwritten(c, p->offset, ASYNC_UNIT);
    return true;
}

/* The source of a load from shared memory has been read: for who knows of the mbarrier's phase. */
static void release_source(const struct cta *c, const struct bulk *b)
{
    struct cta *from = b->source;
    struct hopper *h = from->hopper;
    const u32 agent = agent_of(c, AGENT_MBARRIER + b->mbarrier);
    if (!h->sent)
        h->sent = calloc(from->shared_bytes / ASYNC_UNIT + 1, sizeof *h->sent);
    if (!h->sent)
        abort();
    proxy_end_read(from, b->from, b->bytes);
    for (u32 i = 0; i < b->bytes / ASYNC_UNIT; i++)
        h->sent[b->from / ASYNC_UNIT + i] = (u64)c->cluster->now << SHADOW_TIME_SHIFT | agent;
    cluster_note_visit(from, agent, b->at);
}

/* Whether the warp knows that no load from these 16 bytes still reads; else a fault. */
bool bulk_lets_write(struct warp *w, const struct cta *c, int lane, u32 unit)
{
    const u64 sent = c->hopper->sent[unit];
    if (is_before(w, (u32)sent & SHADOW_AGENT, (u32)(sent >> SHADOW_TIME_SHIFT)))
        return true;
    fault(w, REPORT_IN_FLIGHT, lane,
          "writes shared bytes %u..%u, from which a bulk copy to shared memory was made: its "
          "mbarrier's phase may not have ended",
          unit * ASYNC_UNIT, (unit + 1) * ASYNC_UNIT - 1);
    return false;
}

/* The phase has ended: the copies that have brought their bytes to it are there for who waits. */
void bulk_publish(struct cta *c, u32 mbarrier)
{
    struct bulks *loads = &c->hopper->loads;
    struct mbarrier *m = &c->hopper->mbarriers[mbarrier];
    u32 kept = 0;
    for (u32 i = 0; i < loads->n; i++) {
        const struct bulk *b = &loads->list[i];
        if (b->mbarrier != mbarrier || !b->is_done) {
            loads->list[kept++] = *b;
            continue;
        }
        shared_set_writer(c, b->offset, b->bytes,
                          (u64)c->cluster->now << SHADOW_TIME_SHIFT | (u64)SHADOW_WRITTEN |
                              agent_of(c, AGENT_MBARRIER + mbarrier),
                          b->at);
        if (b->source)
            release_source(c, b);
        else if (!b->is_value)
            box_walk(b, publish_piece, c);
        m->copied_time = c->cluster->now;
        m->copied_by = b->warp;
        m->copied_at = b->at;
    }
    loads->n = kept;
}

bool bulk_reports_to(const struct cta *c, u32 mbarrier)
{
    for (u32 i = 0; i < c->hopper->loads.n; i++)
        if (c->hopper->loads.list[i].mbarrier == mbarrier)
            return true;
    return false;
}

static void deliver(struct cta *c, const struct bulk *b)
{
    if (b->is_value)
        memcpy(c->shared + b->offset, b->value, b->bytes);
    else if (b->source)
        memcpy(c->shared + b->offset, b->source->shared + b->from, b->bytes);
    else
        box_walk(b, load_piece, c);
}

static void arrive(struct cta *c, u32 index)
{
    struct hopper *h = c->hopper;
    struct bulk *b = &h->loads.list[index];
    struct warp *w = b->warp;
    const struct insn *at = w->at;
    const u32 lane = b->lane, bytes = b->bytes;
    if (!b->is_early)
        deliver(c, b);
    b->is_done = true;
    h->n_flying--;
    w->at = &c->kernel->code[b->at]; /* for reports */
    mbarrier_complete_tx(w, (int)lane, &h->mbarriers[b->mbarrier], bytes);
    w->at = at;
}

/* One that is in flight arrives; false if there is none. */
bool bulk_hurry(struct cta *c)
{
    struct hopper *h = c->hopper;
    if (!h || !h->n_flying)
        return false;
    u32 nth = random_below(c, h->n_flying), i = 0;
    for (;; i++)
        if (!h->loads.list[i].is_done && !nth--)
            break;
    arrive(c, i);
    return true;
}

/* Between two turns of warps. */
void bulk_step(struct cta *c)
{
    const struct hopper *h = c->hopper;
    const bool is_polled = c->cluster->idle_polls > 16;
    if (h->n_flying && (is_polled || (h->haste && !random_below(c, h->haste))))
        bulk_hurry(c);
}

/* The mbarrier at an address in the CTA, which the async proxy must know. */
static bool find_mbarrier(struct warp *w, struct cta *c, u64 address, struct bulk *b)
{
    const struct mbarrier *m = mbarrier_find(w, c, (int)b->lane, address);
    char insn[320];
    if (!m)
        return false;
    b->mbarrier = (u32)(m - c->hopper->mbarriers);
    if (proxy_was_fenced(w, m->init_agent, m->init_lane, m->init_time, FENCE_INIT) || mbarrier_is_announced(w, m))
        return true;
    describe_insn(insn, sizeof insn, w->kernel, m->init_at);
    fault(w, REPORT_PROXY, (int)b->lane,
          "the copy reports to the mbarrier at shared offset %u, whose mbarrier.init no "
          "fence.mbarrier_init or fence.proxy.async by that thread follows\n    at %s",
          m->offset, insn);
    return false;
}

/* To the shared memory of this CTA, and to an mbarrier there. */
static bool issue_load(struct warp *w, struct cta *c, u64 dst, u64 mbarrier, struct bulk *b)
{
    if (!find_mbarrier(w, c, mbarrier, b) || !check_shared(w, b, dst, b->is_tensor ? 128 : 16))
        return false;
    b->offset = (u32)(dst - SHARED_BASE);
    if (!proxy_check_write(w, c, (int)b->lane, b->offset, b->bytes) ||
        !shared_begin_copy(w, c, b->lane, b->offset, b->bytes, agent_of(c, AGENT_MBARRIER + b->mbarrier)))
        return false;
    memset(c->shared + b->offset, 0xff, b->bytes);
    if (b->is_early)
        deliver(c, b);
    c->counters->bulk_bytes += b->bytes;
    add(&c->hopper->loads, b);
    c->hopper->n_flying++;
    return true;
}

/* Operands of loads: those of the destination and of the mbarrier, and of the mask of CTAs. */
struct targets {
    u32 dst, mbarrier, mask;
};

/* To the CTA that both addresses are in. */
static bool issue_to_one(struct warp *w, const struct insn *in, const struct targets *t, struct bulk *b)
{
    const int lane = (int)b->lane;
    u64 dst = address_of(w, in, t->dst, lane), mbarrier = address_of(w, in, t->mbarrier, lane);
    struct cta *c = cluster_target(w, lane, &dst), *other = c ? cluster_target(w, lane, &mbarrier) : NULL;
    if (!other)
        return false;
    if (c == other)
        return issue_load(w, c, dst, mbarrier, b);
    fault(w, REPORT_OUT_OF_BOUNDS, lane, "a bulk copy to CTA %u of the cluster, which reports to an mbarrier of CTA %u",
          c->rank, other->rank);
    return false;
}

/* To the same place in several CTAs, and to the mbarrier at the same place of each. */
static bool issue_to_many(struct warp *w, const struct insn *in, const struct targets *t, struct bulk *b)
{
    const struct cluster *k = w->cta->cluster;
    const int lane = (int)b->lane;
    const u32 ctas = row32(w, in->op[t->mask])[lane] & 0xffff;
    u64 dst = address_of(w, in, t->dst, lane), mbarrier = address_of(w, in, t->mbarrier, lane);
    if (!ctas || ctas >> k->n) {
        fault(w, REPORT_OUT_OF_BOUNDS, lane, "copies to the CTAs 0x%x of the cluster, which has %u", ctas, k->n);
        return false;
    }
    if (!cluster_target(w, lane, &dst) || !cluster_target(w, lane, &mbarrier))
        return false;
    FOR_LANES(r, ctas)
    {
        b->is_early = random_below(w->cta, 2);
        if (!issue_load(w, k->cta[r], dst, mbarrier, b))
            return false;
    }
    return true;
}

static bool issue_from_global(struct warp *w, const struct insn *in, const struct targets *t, struct bulk *b)
{
    struct checking x = {.w = w, .lane = (int)b->lane};
    w->cta->counters->global_load_bytes += b->bytes;
    return box_walk(b, check_piece, &x) && (t->mask ? issue_to_many(w, in, t, b) : issue_to_one(w, in, t, b));
}

static void load_tensor(struct warp *w, const struct insn *in, u32 mask, bool is_multicast)
{
    const u32 rank = in->mod[MOD_RANK];
    const struct targets t = {.mbarrier = 4 + rank, .mask = is_multicast ? 6 + rank : 0};
    FOR_LANES(l, mask)
    {
        struct bulk b = new_bulk(w, in, l, BULK_LOAD);
        if (!read_tensor(w, in, 2, &b) || !issue_from_global(w, in, &t, &b))
            return;
    }
}

RUN(bulk_tensor_load)
{
    load_tensor(w, in, mask, false);
}

RUN(bulk_tensor_load_multicast)
{
    load_tensor(w, in, mask, true);
}

static void load_plain(struct warp *w, const struct insn *in, u32 mask, bool is_multicast)
{
    const struct targets t = {.mbarrier = 5, .mask = is_multicast ? 7 : 0};
    FOR_LANES(l, mask)
    {
        struct bulk b = new_bulk(w, in, l, BULK_LOAD);
        b.global = address_of(w, in, 2, (int)l);
        b.bytes = row32(w, in->op[4])[l];
        if (!check_plain(w, &b, b.global) || !issue_from_global(w, in, &t, &b))
            return;
    }
}

RUN(bulk_load)
{
    load_plain(w, in, mask, false);
}

RUN(bulk_load_multicast)
{
    load_plain(w, in, mask, true);
}

/* From the CTA's shared memory to another's. */
RUN(bulk_send)
{
    const struct targets t = {.mbarrier = 5};
    FOR_LANES(l, mask)
    {
        struct bulk b = new_bulk(w, in, l, BULK_LOAD);
        const u64 from = near_address(w, address_of(w, in, 2, (int)l));
        b.bytes = row32(w, in->op[4])[l];
        if (!check_plain(w, &b, from) || !check_shared(w, &b, from, 16))
            return;
        b.source = w->cta;
        b.from = (u32)(from - SHARED_BASE);
        if (!check_source(w, &b, b.from) || !issue_to_one(w, in, &t, &b))
            return;
        proxy_begin_read(w->cta, b.from, b.bytes);
    }
}

/* st.async: 16 bytes of registers. */
RUN(bulk_put)
{
    const struct targets t = {.mbarrier = 6};
    FOR_LANES(l, mask)
    {
        struct bulk b = new_bulk(w, in, l, BULK_LOAD);
        b.is_value = true;
        b.bytes = ASYNC_UNIT;
        for (u32 e = 0; e < 4; e++) {
            const u32 x = (u32)operand_value(w, in->op[2 + e], (int)l);
            memcpy(b.value + 4 * e, &x, 4);
        }
        if (!issue_to_one(w, in, &t, &b))
            return;
    }
}

/* -- stores ---------------------------------------------------------------------------------- */

/* Aligned parts, as wide as they can be. */
static bool store_piece(void *context, const struct bulk *b, const struct piece *p)
{
    struct warp *w = context;
    const struct insn *in = &w->kernel->code[b->at];
    const u8 *from = b->data + (p->offset - b->offset) + p->from;
    u64 address = p->global;
    for (u32 n = p->to - p->from, unit; n; n -= unit, from += unit, address += unit) {
        unit = 16;
        while (unit > n || address & (unit - 1))
            unit /= 2;
        u8 *to = global_access(w, in, (int)b->lane, address, unit, ACCESS_WRITE);
        if (!to || !owner_store(w, in, (int)b->lane, address, unit, 0, to, from))
            return false;
        w->cta->counters->global_store_bytes += unit;
    }
    return true;
}

/* One element at a time; its own order among others is not told. */
static bool add_piece(void *context, const struct bulk *b, const struct piece *p)
{
    struct warp *w = context;
    const struct insn *in = &w->kernel->code[b->at];
    const u32 bytes = type_bytes(b->type);
    const u8 *from = b->data + (p->offset - b->offset);
    for (u32 i = p->from; i < p->to; i += bytes) {
        const u64 address = p->global + i - p->from;
        u64 value = 0;
        memcpy(&value, from + i, bytes);
        /* Twice: it reads a value that must have been written, and then writes. */
        if (!global_access(w, in, (int)b->lane, address, bytes, ACCESS_READ | ACCESS_STRONG))
            return false;
        u8 *to = global_access(w, in, (int)b->lane, address, bytes, ACCESS_WRITE | ACCESS_STRONG);
        if (!to || !owner_store(w, in, (int)b->lane, address, bytes, ACCESS_STRONG, to, NULL))
            return false;
        atomic_add(to, b->type, value);
        w->cta->counters->global_store_bytes += bytes;
    }
    return true;
}

static void read_source(struct cta *c, struct bulk *b)
{
    if (!b->data)
        b->data = malloc(b->bytes);
    if (!b->data)
        abort();
    memcpy(b->data, c->shared + b->offset, b->bytes);
}

static bool write_global(struct warp *w, struct bulk *b)
{
    const struct insn *at = w->at;
    w->at = &w->kernel->code[b->at]; /* for reports */
    b->is_stored = true;
    const bool ok = box_walk(b, b->kind == BULK_ADD ? add_piece : store_piece, w);
    w->at = at;
    return ok;
}

static bool issue_store(struct warp *w, const struct insn *in, u32 source, struct bulk *b)
{
    struct cta *c = w->cta;
    struct checking x = {.w = w, .lane = (int)b->lane};
    const u64 src = near_address(w, address_of(w, in, source, (int)b->lane));
    if (!check_shared(w, b, src, b->is_tensor ? 128 : 16) || !box_walk(b, check_piece, &x))
        return false;
    b->offset = (u32)(src - SHARED_BASE);
    if (!check_source(w, b, b->offset))
        return false;
    b->group = c->hopper->group[w->id][b->lane];
    c->counters->bulk_bytes += b->bytes;
    proxy_begin_read(c, b->offset, b->bytes);
    struct bulk *stored = add(&c->hopper->stores, b);
    if (!b->is_early)
        return true;
    read_source(c, stored);
    return write_global(w, stored);
}

static bool can_add(struct warp *w, const struct bulk *b)
{
    const u32 t = b->type;
    if (b->kind == BULK_STORE || t == TYPE_U32 || t == TYPE_S32 || t == TYPE_U64 || t == TYPE_F16 || t == TYPE_BF16 ||
        t == TYPE_F32 || t == TYPE_F64)
        return true;
    fault(w, REPORT_BOX, (int)b->lane,
          "the tensor map's elements are %s; a box of u32, s32, u64, f16, bf16, f32 or f64 can be "
          "added",
          t == TYPE_U8    ? "u8"
          : t == TYPE_U16 ? "u16"
                          : "s64");
    return false;
}

static void store_tensor(struct warp *w, const struct insn *in, u32 mask, enum bulk_kind kind)
{
    FOR_LANES(l, mask)
    {
        struct bulk b = new_bulk(w, in, l, kind);
        if (!read_tensor(w, in, 0, &b))
            return;
        b.type = b.map.type;
        if (!can_add(w, &b) || !issue_store(w, in, 2 + in->mod[MOD_RANK], &b))
            return;
    }
}

RUN(bulk_tensor_store)
{
    store_tensor(w, in, mask, BULK_STORE);
}

RUN(bulk_tensor_add)
{
    store_tensor(w, in, mask, BULK_ADD);
}

static void store_plain(struct warp *w, const struct insn *in, u32 mask, enum bulk_kind kind)
{
    FOR_LANES(l, mask)
    {
        struct bulk b = new_bulk(w, in, l, kind);
        b.type = in->mod[MOD_TYPE];
        b.global = address_of(w, in, 0, (int)l);
        b.bytes = row32(w, in->op[4])[l];
        if (!check_plain(w, &b, b.global) || !issue_store(w, in, 2, &b))
            return;
    }
}

RUN(bulk_store)
{
    store_plain(w, in, mask, BULK_STORE);
}

RUN(bulk_add)
{
    store_plain(w, in, mask, BULK_ADD);
}

RUN(bulk_commit)
{
    (void)in;
    FOR_LANES(l, mask) w->cta->hopper->group[w->id][l]++;
}

static void finish_read(struct warp *w, struct bulk *b)
{
    struct cta *c = w->cta;
    if (b->is_done)
        return;
    if (!b->is_stored)
        read_source(c, b);
    proxy_end_read(c, b->offset, b->bytes);
    shared_note_reads(w, b->offset, b->bytes);
    b->is_done = true;
}

static void wait_groups(struct warp *w, u32 mask, u64 keep, bool for_reads)
{
    struct hopper *h = w->cta->hopper;
    u32 kept = 0;
    for (u32 i = 0; i < h->stores.n; i++) {
        struct bulk *b = &h->stores.list[i];
        const bool is_due = b->warp == w && mask >> b->lane & 1 && b->group + keep < h->group[w->id][b->lane];
        if (is_due)
            finish_read(w, b);
        if (is_due && !for_reads) {
            if (!b->is_stored && !write_global(w, b))
                return;
            free(b->data);
            b->data = NULL;
        } else {
            const struct bulk left = *b;
            b->data = NULL; /* each buffer is in the list once, whatever happens */
            h->stores.list[kept++] = left;
        }
    }
    h->stores.n = kept;
}

RUN(bulk_wait)
{
    wait_groups(w, mask, (u64)in->imm, false);
}

RUN(bulk_wait_read)
{
    wait_groups(w, mask, (u64)in->imm, true);
}

/* -- the end --------------------------------------------------------------------------------- */

static void report_left(struct cta *c, const struct warp *by, u32 at, const char *what)
{
    struct warp *w = &c->warps[by->id];
    w->at = &c->kernel->code[at];
    fault(w, REPORT_IN_FLIGHT, ALL_LANES, "the CTA has ended, and a bulk copy %s", what);
}

static bool was_waited_for(const struct cta *c, const struct mbarrier *m)
{
    const u32 agent = agent_of(c, AGENT_MBARRIER + (u32)(m - c->hopper->mbarriers));
    for (u32 i = 0; i < c->n_warps; i++)
        if (c->warps[i].seen[agent] >= m->copied_time)
            return true;
    return false;
}

static void check_loads_ended(struct cta *c)
{
    static const char what[] = "to its shared memory may still be in flight: nobody has waited for it";
    const struct hopper *h = c->hopper;
    if (h->loads.n)
        report_left(c, h->loads.list[0].warp, h->loads.list[0].at, what);
    for (u32 i = 0; i < h->n_mbarriers; i++)
        if (!was_waited_for(c, &h->mbarriers[i]))
            report_left(c, h->mbarriers[i].copied_by, h->mbarriers[i].copied_at, what);
}

static void check_sources(struct cta *c)
{
    for (u32 i = 0; i < c->shared_bytes; i += ASYNC_UNIT) {
        const struct bulk *b = c->hopper->readers[i / ASYNC_UNIT] ? find_sender(c, i) : NULL;
        if (b)
            report_left(c, b->warp, b->at,
                        "from its shared memory may still read there: nobody has waited for its "
                        "mbarrier");
    }
}

/* All warps have ended: shared memory must be nobody's, and stores reach global memory. */
void bulk_end(struct cta *c)
{
    struct hopper *h = c->hopper;
    const bool is_checked = c->launch->config->checks & TGEMU_CHECK_IN_FLIGHT;
    if (is_checked) {
        check_loads_ended(c);
        check_sources(c);
    }
    for (u32 i = 0; i < h->stores.n && !c->report->is_set; i++) {
        struct bulk *b = &h->stores.list[i];
        struct warp *w = b->warp;
        if (!b->is_done && is_checked) {
            report_left(c, b->warp, b->at,
                        "from its shared memory may still read there: no "
                        "cp.async.bulk.wait_group covers it");
            return;
        }
        finish_read(w, b);
        if (!b->is_stored)
            write_global(w, b);
    }
}
