/* hopper.h - what mbarriers, bulk copies and wgmma share. A CTA has it only if its kernel uses one
 * of them.
 *
 * Asynchronous work is done by agents of its own: the copies that report to one mbarrier, the wgmma
 * of one warpgroup. Their accesses have times on the CTA's clock as those of warps have, and a warp
 * learns of them (warp->seen) when it waits: for a phase of the mbarrier, for a wgmma group. */
#ifndef HOPPER_H
#define HOPPER_H

#include "emu.h"

enum {
    MAX_MBARRIER_COUNT = (1 << 20) - 1, /* of arrivals, and of bytes */
    MAX_IDLE_POLLS = 1 << 17,           /* waits that fail while nothing happens */
    MAX_FENCES = 32,
    ASYNC_UNIT = 16, /* bytes: the async proxy takes no fewer of shared memory */
    MAX_RANK = 5,
};

struct mbarrier {
    bool is_live;
    struct cta *cta; /* in whose shared memory it is */
    u32 offset;
    u32 expected, pending;
    s32 tx; /* bytes expected and not yet arrived */
    u32 phase;
    u32 init_time, init_agent, init_lane, init_at;
    u32 init_phase;             /* of the cluster's barrier, that tells of it even by relaxed arrivals */
    u32 copied_time, copied_at; /* the last phase to which a copy reported, and the copy */
    const struct warp *copied_by;
    u32 *joined[2];   /* what those who arrived have seen: of the CTA, of others of its cluster */
    u32 *released[2]; /* of these, what came before the last completed phase */
};

/* What a fence makes visible: to the async proxy what was stored to shared memory, and what
 * mbarrier.init has made; to the cluster the latter, even by relaxed arrivals. */
enum { FENCE_SHARED = 1, FENCE_INIT = 2, FENCE_INIT_CLUSTER = 4 };

struct fence {
    u32 time, mask, covers;
};

struct fences { /* of one warp, the last ones */
    struct fence list[MAX_FENCES];
    u32 n;
};

/* tensormap.c's encoding of a CUtensorMap. */
struct tensor_map {
    u64 magic, base;
    u64 stride[MAX_RANK - 1];
    u32 last[MAX_RANK]; /* dimensions, less one */
    u16 box[MAX_RANK];
    u8 step[MAX_RANK];
    u8 rank, type, element_bytes, swizzle, has_nan_fill; /* the type one of emu.h */
};

enum bulk_kind { BULK_LOAD, BULK_STORE, BULK_ADD };

/* A bulk copy between global and shared memory, where it takes one range. BULK_ADD adds to global
 * memory. A load may come from shared memory too, and be another CTA's; or from registers. */
struct bulk {
    enum bulk_kind kind;
    bool is_tensor, is_early;
    bool is_done;   /* load: the bytes are there. store: they were read, and are in `data` */
    bool is_stored; /* store: and in global memory */
    struct warp *warp;
    u32 lane, at;
    u32 group;    /* store: number of the lane's group */
    u32 mbarrier; /* load: index */
    u32 offset, bytes;
    struct cta *source; /* load: if from shared memory, whose, and where there */
    u32 from;
    bool is_value; /* load: or a thread's registers */
    u8 value[ASYNC_UNIT];
    u64 global; /* of a copy that is no tensor's */
    u32 type;   /* of what is added */
    struct tensor_map map;
    s32 coordinate[MAX_RANK];
    u8 *data;
};

struct bulks {
    struct bulk *list;
    u32 n, capacity;
};

/* Who has written what an operation reads: for its other warps, which must know it too. */
struct origin {
    u64 word; /* a granule's last write, but for the lane */
    u32 lanes, granule;
};

enum { MAX_ORIGINS = 64 };

struct origins {
    u32 n;    /* more than there is room for are forgotten */
    u64 last; /* the word seen last, with its lane: most follow their like */
    u32 at;   /* its place in the list, if it has one */
    struct origin list[MAX_ORIGINS];
};

/* A matrix in shared memory, as a wgmma descriptor says. */
struct matrix {
    u64 descriptor;
    u32 lines;           /* rows of A, columns of B */
    bool is_lines_first; /* lines are contiguous (MN-major), not the steps of the sum (K-major) */
};

enum { MATRIX_UNITS = 512 }; /* of 16 bytes; 256 lines of 16 elements of 2 bytes at most */

/* Where they lie. */
struct operand_units {
    u32 n, offset[MATRIX_UNITS]; /* in shared memory */
};

/* What an mma reads there: A, if not in registers, and B; and who has written it. */
struct operands {
    struct operand_units a, b;
    struct origins origins;
};

enum wgmma_kind { WGMMA_FENCE, WGMMA_MMA, WGMMA_COMMIT, WGMMA_WAIT, WGMMA_REGISTERS };

/* What the warps of a warpgroup execute together, though each at its time. */
struct wgmma_op {
    enum wgmma_kind kind;
    u32 at;
    bool scale_d;
    u64 a, b; /* mma: descriptors */
    u32 time; /* mma: of its execution, or 0 */
    struct operands *operands;
};

struct warpgroup {
    struct wgmma_op *log;
    u32 first, n, capacity; /* log[0] is operation `first` */
    u32 executed;           /* operations before this one have been */
    u32 position[4];        /* the next operation of each warp */
    u32 retired[4];         /* what comes before has been waited for */
};

/* A register that wgmma may hold, of one warp. */
struct held {
    u32 op;      /* from 1: the last operation in flight that has it */
    u32 touched; /* insn + 1 that touched it since the last wgmma.fence */
    u16 shape;   /* of the mma that has accumulated in it since then */
    bool is_accumulator;
};

struct hopper {
    struct mbarrier mbarriers[MAX_MBARRIERS];
    u32 *clocks;     /* what they point into */
    u32 n_mbarriers; /* live ones are among these */
    u32 *fenced;     /* of each warp: what it had seen at its last fence of the CTA; and at the last behind which a
                        fence.proxy.async came */
    u8 *mbarrier_at; /* per 8 bytes of shared memory, counted from 1 */
    struct fences fences[MAX_WARPS];
    struct origin fine[MAX_WARPS][MAX_ORIGINS]; /* what the warp's wgmma may read, a part of it */
    u16 *readers;                               /* per ASYNC_UNIT of shared memory: operations that will read it */
    struct bulks loads, stores;
    u64 *sent;    /* per ASYNC_UNIT: the last copy from there to another place in shared
                     memory, as its mbarrier's agent and a time; made by the first */
    u32 n_flying; /* loads that have not arrived */
    u32 haste;    /* loads arrive at one step of so many; 0: only when they must */
    struct warpgroup warpgroups[MAX_WARPGROUPS];
    u32 n_warpgroups;
    u32 *wgmma_read;              /* per ASYNC_UNIT and warpgroup: when its wgmma last read there */
    struct held *held[MAX_WARPS]; /* by number, see insn->touched */
    bool has_fenced[MAX_WARPS];
    bool waits_for_warps[MAX_WARPS]; /* at a wgmma.wait_group that they have not come to */
    u32 group[MAX_WARPS][LANES];     /* stores: number of the lane's open group */
};

/* mbarrier.c */
void mbarriers_reset(struct cta *c);
struct mbarrier *mbarrier_find(struct warp *w, struct cta *c, int lane, u64 address);
bool mbarrier_is_announced(const struct warp *w, const struct mbarrier *m);
void mbarrier_complete_tx(struct warp *w, int lane, struct mbarrier *m, u32 bytes);
bool mbarrier_covers(struct warp *w, struct cta *c, int lane, u32 offset, u32 bytes, int what);
void mbarrier_describe(const struct cta *c, const struct warp *w, char *out, size_t size);

/* Whether there is one in these 16 bytes. */
static inline bool has_mbarrier(const struct hopper *h, u32 offset)
{
    return h->mbarrier_at[offset / 8] | h->mbarrier_at[offset / 8 + 1];
}

/* proxy.c */
void proxy_note_fence(struct warp *w);           /* a fence.acq_rel */
const u32 *proxy_released(const struct warp *w); /* what a fence.proxy.async behind such a one has seen, by agents */
bool proxy_was_fenced(const struct warp *w, u32 writer, u32 lane, u32 time, u32 covers);
bool proxy_check_read(struct warp *w, int lane, u32 offset, u32 bytes);
bool proxy_check_write(struct warp *w, struct cta *c, int lane, u32 offset, u32 bytes);
void proxy_begin_read(struct cta *c, u32 offset, u32 bytes);
void proxy_end_read(struct cta *c, u32 offset, u32 bytes);
bool proxy_add_origins(struct warp *w, struct origins *o, const struct operand_units *units);
bool proxy_check_origins(struct warp *w, const struct origins *o);
bool proxy_lets_write(struct warp *w, struct cta *c, int lane, u32 offset, u32 bytes);

/* box.c */
u32 box_bytes(const struct tensor_map *m);
bool box_check(struct warp *w, const struct bulk *b);
struct piece { /* 16 bytes in shared memory, and which of them are in bounds */
    u32 offset, from, to;
    u64 global; /* of byte `from` */
};
typedef bool piece_visit(void *context, const struct bulk *b, const struct piece *p);
bool box_walk(const struct bulk *b, piece_visit *visit, void *context);

/* tensormap.c */
bool tensor_map_read(struct warp *w, int lane, u64 address, struct tensor_map *out);

/* bulk.c */
void bulk_step(struct cta *c);
bool bulk_hurry(struct cta *c);
bool bulk_lets_write(struct warp *w, const struct cta *c, int lane, u32 unit);
void bulk_publish(struct cta *c, u32 mbarrier);
bool bulk_reports_to(const struct cta *c, u32 mbarrier);
void bulk_end(struct cta *c);
void bulk_reset(struct cta *c);
void bulk_free(struct cta *c);
void bulk_describe_load(const struct cta *c, u32 offset, char *out, size_t size);
void bulk_describe_store(const struct cta *c, u32 offset, char *out, size_t size);

/* matrix_units.c */
u32 matrix_units(const struct matrix *m, u32 *address);
void matrix_load_a(const struct cta *c, const struct operand_units *units, const struct matrix *m, u32 type, u32 sign,
                   float out[64][16]);
void matrix_load_b(const struct cta *c, const struct operand_units *units, const struct matrix *m, u32 type, u32 sign,
                   float out[16][256]);

/* multiply.c */
struct mma_tiles {
    float a[16][16], b[16][8], d[16][8];
};
void mma_multiply(struct mma_tiles *t, u32 depth); /* d += a b */
struct wgmma_tiles {
    float a[64][16];
    float b[16][256]; /* of eight columns the even ones first */
    float behind[8];  /* what a vector may read and not use */
};
void wgmma_multiply(const struct wgmma_tiles *t, u32 depth, u32 n, float *d[4][128]);

/* wgmma.c */
bool wgmma_init(struct cta *c);
void wgmma_reset(struct cta *c);
void wgmma_free(struct cta *c);
void wgmma_end(struct cta *c);
bool wgmma_lets_touch(struct warp *w, const struct insn *in);
bool wgmma_lets_write(struct warp *w, const struct cta *c, int lane, u32 unit);
bool wgmma_describe_reader(const struct cta *c, u32 unit, char *out, size_t size);

/* hopper.c */
bool hopper_init(struct cta *c);
void hopper_reset(struct cta *c);
void hopper_end(struct cta *c);
void hopper_free(struct cta *c);

#endif
