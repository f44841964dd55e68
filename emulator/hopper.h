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
};

struct mbarrier {
    bool is_live;
    u32 offset; /* in shared memory */
    u32 expected, pending;
    s32 tx; /* bytes expected and not yet arrived */
    u32 phase;
    u32 init_time, init_warp, init_lane, init_at;
    u32 joined[MAX_AGENTS];   /* what those who arrived have seen */
    u32 released[MAX_AGENTS]; /* of these, what came before the last completed phase */
};

struct hopper {
    struct mbarrier mbarriers[MAX_MBARRIERS];
    u32 n_mbarriers; /* live ones are among these */
    u8 *mbarrier_at; /* per 8 bytes of shared memory, counted from 1 */
    u32 idle_polls;
};

/* mbarrier.c */
struct mbarrier *mbarrier_find(struct warp *w, int lane, u64 address);
void mbarrier_complete_tx(struct warp *w, int lane, struct mbarrier *m, u32 bytes);
bool mbarrier_covers(struct warp *w, int lane, u32 offset, u32 bytes, int what);
void mbarrier_describe(const struct cta *c, const struct warp *w, char *out, size_t size);

/* hopper.c */
bool hopper_init(struct cta *c);
void hopper_reset(struct cta *c);
void hopper_free(struct cta *c);

#endif
