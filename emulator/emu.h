/* emu.h - the emulator's inside: what parse, decode, execution and driver share.
 *
 * The one idea: a PTX register is a row of 32 lanes. Immediates, special registers and addresses of
 * variables are rows too, written before the kernel starts, so an operand is always just a row
 * number and an instruction is a loop over lanes. The table of instructions is ops.def. */
#ifndef EMU_H
#define EMU_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tegula_emu.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

enum {
    LANES = 32,
    MAX_WARPS = 32,
    MAX_WARPGROUPS = MAX_WARPS / 4,
    MAX_CLUSTER = 8, /* CTAs */
    N_BARRIERS = 16,
    ALL_LANES = -1,
    SHARED_BASE = 1024, /* not 0: a kernel that takes shared addresses for offsets is wrong on sm_90 */
};

/* Who accesses shared memory: the warps, the wgmma of a warpgroup, the async copies that report to
 * an mbarrier. Each CTA of a cluster has as many numbers for them; these are the first one's. */
enum {
    AGENT_WARPGROUP = MAX_WARPS,
    AGENT_MBARRIER = AGENT_WARPGROUP + MAX_WARPGROUPS,
    CTA_AGENTS = 128,
    MAX_MBARRIERS = CTA_AGENTS - AGENT_MBARRIER
};

#define FULL_MASK 0xffffffffu
#define NO_PC     0xffffffffu

/* Where generic addresses point; global allocations lie between. */
#define LOCAL_WINDOW  0x100000000000ull
#define SHARED_WINDOW 0x200000000000ull
#define PARAM_WINDOW  0x300000000000ull
#define GLOBAL_BASE   0x700000000000ull
#define WINDOW_BYTES  0x100000000ull

/* Loops over lanes are vectorised twice, and the CPU chooses. Sanitizers run before ifuncs can. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CLONES
#endif

/* Modifiers. A class names the words that may stand at one place of a mnemonic. insn->mod[class] is
 * the word's place in the list, counted from 1; 0 means none. X(class, name in ops.def patterns,
 * words) */
#define MOD_CLASSES(X)                                                                                                 \
    X(CMP, "cmp", "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan")                                     \
    X(BOOL, "bool", "and or xor")                                                                                      \
    X(FTZ, "ftz", "ftz")                                                                                               \
    X(SAT, "sat", "sat relu")                                                                                          \
    X(RND, "rnd", "rn rz rm rp rni rzi rmi rpi rna")                                                                   \
    X(SPACE, "space", "global shared local param const shared::cta param::entry shared::cluster")                      \
    X(TYPE, "type", "b8 u8 s8 b16 u16 s16 f16 bf16 b32 u32 s32 f32 f16x2 bf16x2 tf32 b64 u64 s64 f64")                 \
    X(FROM, "from", "b8 u8 s8 b16 u16 s16 f16 bf16 b32 u32 s32 f32 f16x2 bf16x2 tf32 b64 u64 s64 f64")                 \
    X(STRONG, "strong", "volatile relaxed acquire release acq_rel")                                                    \
    X(SCOPE, "scope", "cta cluster gpu sys")                                                                           \
    X(HINT, "hint",                                                                                                    \
      "weak ca cg cs lu cv wb wt nc noftz L1::evict_normal L1::evict_unchanged L1::evict_first "                       \
      "L1::evict_last "                                                                                                \
      "L1::no_allocate L2::64B L2::128B L2::256B L2::cache_hint L2::evict_last L2::evict_normal "                      \
      "L2::evict_first L2::evict_unchanged")                                                                           \
    X(HOW, "how", "up down bfly idx")                                                                                  \
    X(VOTE, "vote", "all any uni ballot")                                                                              \
    X(RMW, "rmw", "add min max and or xor exch inc dec popc")                                                          \
    X(TRANS, "trans", "trans")                                                                                         \
    X(PRMT, "prmt", "f4e b4e rc8 ecl ecr rc16")                                                                        \
    X(TEST, "test", "finite infinite number notanumber normal subnormal")                                              \
    X(CLAMP, "clamp", "clamp wrap")                                                                                    \
    X(RANK, "rank", "1d 2d 3d 4d 5d")                                                                                  \
    X(WGMMA16, "wgmma16",                                                                                              \
      "m64n8k16 m64n16k16 m64n24k16 m64n32k16 m64n40k16 m64n48k16 m64n56k16 "                                          \
      "m64n64k16 m64n72k16 m64n80k16 m64n88k16 m64n96k16 m64n104k16 m64n112k16 "                                       \
      "m64n120k16 m64n128k16 m64n136k16 m64n144k16 m64n152k16 m64n160k16 m64n168k16 "                                  \
      "m64n176k16 m64n184k16 m64n192k16 m64n200k16 m64n208k16 m64n216k16 m64n224k16 "                                  \
      "m64n232k16 m64n240k16 m64n248k16 m64n256k16")                                                                   \
    X(WGMMA8, "wgmma8",                                                                                                \
      "m64n8k8 m64n16k8 m64n24k8 m64n32k8 m64n40k8 m64n48k8 m64n56k8 "                                                 \
      "m64n64k8 m64n72k8 m64n80k8 m64n88k8 m64n96k8 m64n104k8 m64n112k8 "                                              \
      "m64n120k8 m64n128k8 m64n136k8 m64n144k8 m64n152k8 m64n160k8 m64n168k8 "                                         \
      "m64n176k8 m64n184k8 m64n192k8 m64n200k8 m64n208k8 m64n216k8 m64n224k8 "                                         \
      "m64n232k8 m64n240k8 m64n248k8 m64n256k8")

enum mod_class {
#define X(id, name, words) MOD_##id,
    MOD_CLASSES(X)
#undef X
        N_MODS
};

enum {
    CMP_EQ = 1,
    CMP_NE,
    CMP_LT,
    CMP_LE,
    CMP_GT,
    CMP_GE,
    CMP_LO,
    CMP_LS,
    CMP_HI,
    CMP_HS,
    CMP_EQU,
    CMP_NEU,
    CMP_LTU,
    CMP_LEU,
    CMP_GTU,
    CMP_GEU,
    CMP_NUM,
    CMP_NAN
};
enum { BOOL_AND = 1, BOOL_OR, BOOL_XOR };
enum { SAT_SAT = 1, SAT_RELU };
enum { RND_RN = 1, RND_RZ, RND_RM, RND_RP, RND_RNI, RND_RZI, RND_RMI, RND_RPI, RND_RNA };
enum {
    SPACE_GENERIC,
    SPACE_GLOBAL,
    SPACE_SHARED,
    SPACE_LOCAL,
    SPACE_PARAM,
    SPACE_CONST,
    SPACE_SHARED_CTA,
    SPACE_PARAM_ENTRY,
    SPACE_SHARED_CLUSTER
};
enum {
    TYPE_B8 = 1,
    TYPE_U8,
    TYPE_S8,
    TYPE_B16,
    TYPE_U16,
    TYPE_S16,
    TYPE_F16,
    TYPE_BF16,
    TYPE_B32,
    TYPE_U32,
    TYPE_S32,
    TYPE_F32,
    TYPE_F16X2,
    TYPE_BF16X2,
    TYPE_TF32,
    TYPE_B64,
    TYPE_U64,
    TYPE_S64,
    TYPE_F64
};
enum { STRONG_VOLATILE = 1, STRONG_RELAXED, STRONG_ACQUIRE, STRONG_RELEASE, STRONG_ACQ_REL };
enum { SCOPE_CTA = 1, SCOPE_CLUSTER, SCOPE_GPU, SCOPE_SYS };
enum { HOW_UP = 1, HOW_DOWN, HOW_BFLY, HOW_IDX };
enum { VOTE_ALL = 1, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum { RMW_ADD = 1, RMW_MIN, RMW_MAX, RMW_AND, RMW_OR, RMW_XOR, RMW_EXCH, RMW_INC, RMW_DEC, RMW_POPC, RMW_CAS };
enum { TEST_FINITE = 1, TEST_INFINITE, TEST_NUMBER, TEST_NAN, TEST_NORMAL, TEST_SUBNORMAL };

static inline u32 type_bytes(u32 type)
{
    return type <= TYPE_S8 ? 1 : type <= TYPE_BF16 ? 2 : type <= TYPE_TF32 ? 4 : 8;
}

static inline bool type_is_signed(u32 type)
{
    return type == TYPE_S8 || type == TYPE_S16 || type == TYPE_S32 || type == TYPE_S64;
}

/* -- decoded code ---------------------------------------------------------------------------- */
struct warp;
struct insn;
typedef void insn_run(struct warp *w, const struct insn *in, u32 mask);

/* An operand is a register row and its width, or a predicate and its sense. */
#define ROW_MASK        0x0fffffffu
#define NO_OPERAND      0xffffffffu
#define OPERAND_ROW(x)  ((x)&ROW_MASK)
#define OPERAND_BITS(x) (8u << ((x) >> 28)) /* 16, 32 or 64 */
enum { PRED_FALSE, PRED_TRUE, PRED_SINK, N_FIXED_PREDS };
enum { ROW_SINK, N_FIXED_ROWS = 2 }; /* `_` as a destination: a row of its own, written and never read */

enum insn_kind {
    KIND_LANE,   /* touches nothing but registers: cannot fault, block or jump */
    KIND_JUMP,   /* changes the warp's pc or mask */
    KIND_ACCESS, /* memory: may fault; another warp may run first */
    KIND_SYNC,   /* barrier, or an operation of the warp as a whole */
};

struct insn {
    insn_run *run;
    const u32 *op; /* operands in the order of the text, destinations first, vectors flattened */
    s64 imm;       /* address offset, jump target or immediate */
    u32 n_ops, n_dst;
    u32 guard;      /* predicate operand; PRED_TRUE when there is none */
    u32 reconverge; /* jumps: the immediate post-dominator */
    u32 line;       /* in the PTX */
    u32 file, src_line;
    u32 serial; /* index in code */
    /* Of the registers that it names, those which wgmma may hold: their numbers among these. */
    const u32 *touched;
    u32 n_touched;
    u8 kind;
    bool is_wgmma;
    u8 mod[N_MODS];
};

struct table {
    u32 n;
    u32 *target;
};

struct param {
    char *name;
    u32 offset, bytes;
};

enum special {
    SPECIAL_NONE,
#define SPECIALS(X)                                                                                                    \
    X(TID_X, "%tid.x")                                                                                                 \
    X(TID_Y, "%tid.y")                                                                                                 \
    X(TID_Z, "%tid.z")                                                                                                 \
    X(NTID_X, "%ntid.x")                                                                                               \
    X(NTID_Y, "%ntid.y")                                                                                               \
    X(NTID_Z, "%ntid.z")                                                                                               \
    X(CTAID_X, "%ctaid.x")                                                                                             \
    X(CTAID_Y, "%ctaid.y")                                                                                             \
    X(CTAID_Z, "%ctaid.z")                                                                                             \
    X(NCTAID_X, "%nctaid.x")                                                                                           \
    X(NCTAID_Y, "%nctaid.y")                                                                                           \
    X(NCTAID_Z, "%nctaid.z")                                                                                           \
    X(LANEID, "%laneid")                                                                                               \
    X(WARPID, "%warpid")                                                                                               \
    X(NWARPID, "%nwarpid")                                                                                             \
    X(SMID, "%smid")                                                                                                   \
    X(NSMID, "%nsmid")                                                                                                 \
    X(LANEMASK_EQ, "%lanemask_eq")                                                                                     \
    X(LANEMASK_LT, "%lanemask_lt")                                                                                     \
    X(LANEMASK_LE, "%lanemask_le")                                                                                     \
    X(LANEMASK_GT, "%lanemask_gt")                                                                                     \
    X(LANEMASK_GE, "%lanemask_ge")                                                                                     \
    X(DYNAMIC_SMEM, "%dynamic_smem_size")                                                                              \
    X(TOTAL_SMEM, "%total_smem_size")                                                                                  \
    X(CLUSTERID_X, "%clusterid.x")                                                                                     \
    X(CLUSTERID_Y, "%clusterid.y")                                                                                     \
    X(CLUSTERID_Z, "%clusterid.z")                                                                                     \
    X(NCLUSTERID_X, "%nclusterid.x")                                                                                   \
    X(NCLUSTERID_Y, "%nclusterid.y")                                                                                   \
    X(NCLUSTERID_Z, "%nclusterid.z")                                                                                   \
    X(CLUSTER_CTAID_X, "%cluster_ctaid.x")                                                                             \
    X(CLUSTER_CTAID_Y, "%cluster_ctaid.y")                                                                             \
    X(CLUSTER_CTAID_Z, "%cluster_ctaid.z")                                                                             \
    X(CLUSTER_NCTAID_X, "%cluster_nctaid.x")                                                                           \
    X(CLUSTER_NCTAID_Y, "%cluster_nctaid.y")                                                                           \
    X(CLUSTER_NCTAID_Z, "%cluster_nctaid.z")                                                                           \
    X(CLUSTER_CTARANK, "%cluster_ctarank")                                                                             \
    X(CLUSTER_NCTARANK, "%cluster_nctarank")
#define X(id, text) SPECIAL_##id,
    SPECIALS(X)
#undef X
        N_SPECIALS
};

struct symbol; /* parse.c */

/* A row that is written before the kernel starts: an immediate, a variable's address, a special
 * register. */
struct fixed_row {
    u32 row, bits;
    u64 value;
    const struct symbol *symbol; /* its address is added, when the kernel is complete */
    bool is_shared;              /* and cluster_bits(), when a CTA starts */
    u32 special;
};

struct kernel {
    struct module *module;
    char *name;
    struct insn *code;
    u32 n_code;
    u32 *operands; /* what insn->op points into */
    struct table *tables;
    u32 n_tables;
    struct fixed_row *fixed;
    u32 n_fixed;
    u32 *touched; /* what insn->touched points into */
    u32 n_wgmma_rows;
    u32 n_rows, n_preds;
    struct param *params;
    u32 n_params, param_bytes;
    u32 static_smem, dynamic_base, local_bytes;
    u32 max_dynamic_smem; /* cuFuncSetAttribute */
    u32 reqntid[3], max_threads, max_regs;
    u32 reqnctapercluster[3], max_cluster; /* 0: not said */
    u32 granule_log2;                      /* width of the narrowest access to shared memory */
    u32 global_granule_log2;
    bool has_gpu_fence; /* other than what release.c follows */
    bool has_release;
    bool lets_next_begin;
    bool is_async; /* uses what hopper.h is about */
    struct kernel *next;
};

struct module {
    char *text;
    u32 n_lines;
    const char **lines; /* 1-based: lines[1] is the first */
    char **files;       /* .file */
    u32 n_files;
    struct kernel *kernels;
    struct symbol *globals;
    u32 target, is_arch_specific; /* 80 for sm_80 */
    struct module *next;
};

/* -- memory ---------------------------------------------------------------------------------- */
struct allocation {
    u64 base, bytes;
    u8 *data;
    u8 *written;        /* one byte per byte; NULL: all of it is */
    u64 *owner;         /* owner.c, during a launch: who stored last */
    u32 *reader[2];     /* and who has read: plain loads, strong ones */
    struct note *notes; /* release.c, during a launch */
    u8 *ahead; /* ahead.c: what the launch before has touched, a byte per byte; NULL: nothing, or it has ended */
    bool is_freed;
};

struct memory {
    struct allocation **list; /* by address, freed ones included */
    u32 n, capacity;
    u64 next_base, used;
    bool lets_next_begin; /* the last launch has */
    struct kept *kept;    /* keep.c; NULL: nothing */
};

/* The last write of a granule: time, lane, flags, agent. */
enum {
    SHADOW_AGENT = MAX_CLUSTER * CTA_AGENTS - 1,
    SHADOW_WRITTEN = 1 << 10,
    SHADOW_IN_FLIGHT = 2 << 10,
    SHADOW_STRONG = 4 << 10,
    SHADOW_LANE_SHIFT = 16,
    SHADOW_TIME_SHIFT = 32,
};
#define SHADOW_LANE ((u64)(LANES - 1) << SHADOW_LANE_SHIFT)

/* Shared memory's shadow, one entry per granule. Times are on the cluster's clock. */
struct shadow {
    u32 granule_log2, n;
    u64 *write;
    u32 *read_gen;  /* time of the last reads */
    u32 *read_mask; /* by which of the CTA's warps */
    u32 *write_at;  /* insn serial, for reports */
    u32 *read_at;
    u32 *store_id; /* the store instruction that wrote it last, to find two lanes in one place */
    u32 *history;  /* [granule][warp] read times, made when read_mask cannot tell */
    bool is_used;  /* by a CTA before: not all zeros */
    u8 *far_ranks; /* CTAs whose warps have read since the last write; made by the first to do so */
    u32 *far;      /* [granule][rank][warp] when */
};

/* -- execution ------------------------------------------------------------------------------- */
enum warp_event { EVENT_NONE, EVENT_YIELD, EVENT_BLOCK, EVENT_EXIT, EVENT_FAULT };

struct frame {
    u32 pc, until, mask; /* run mask from pc; drop the frame when it gets to `until` */
};

struct copy {
    u32 lane, group, dst, bytes, src_bytes;
    u64 src;
    struct allocation *from; /* which has it */
    u32 at;
    bool is_early;
};

struct pending {
    struct copy *list;
    u32 n, capacity;
    u32 group[LANES]; /* number of the lane's open group */
};

struct warp {
    struct cta *cta;
    const struct kernel *kernel;
    u32 id, exists, exited;
    u32 agent; /* its number in the cluster */
    u32 *rows;
    u32 *preds;
    u32 pc, mask, until;
    const struct insn *at; /* being executed */
    struct frame stack[80];
    u32 depth;
    enum warp_event event;
    bool is_done, is_blocked;
    u32 barrier;     /* blocked on it */
    u32 mbarrier;    /* or on this one, counted from 1 */
    u32 gave_up_at;  /* the try_wait that failed last */
    u32 *seen;       /* times up to which the other agents' accesses are ordered before this one's */
    u32 seen_all;    /* the least of those of the CTA's other warps */
    u64 known;       /* a write, but for its lane, that is finished and before: most are like it */
    u64 known_store; /* the same of global memory, another cluster's: owner.c's word */
    u32 cluster_arrived, cluster_waited; /* phases of the cluster's barrier, counted from 1 */
    bool waits_for_cluster;
    struct pending pending;
    u8 *local, *local_written;
};

struct barrier {
    u32 expected, arrived; /* threads */
    u32 waiting, present;  /* warps */
    u32 first_at;          /* insn serial of the first arrival */
    u32 popc, n_red;       /* bar.red */
    u32 *joined;           /* what those who arrived have seen */
};

struct launch {
    const struct kernel *kernel;
    const struct tgemu_config *config;
    struct memory *memory;
    u8 *params;
    u32 grid[3], block[3], cluster[3];
    u32 n_threads, n_warps, dynamic_smem;
    u32 n_ranks; /* CTAs of a cluster */
    u64 n_ctas, serial;
    bool overlaps; /* may begin before what is ahead of it on the stream has ended */
};

struct visit {
    u32 time, at;
};

/* A note that an agent took at that time, or that was not there for it yet: release.c. */
struct taken {
    const struct note *note;
    u32 agent, time;
    bool is_early;
};

/* CTAs that run together. */
struct cluster {
    struct cta *cta[MAX_CLUSTER];
    u32 n;
    u64 index;
    const u64 *stop_at; /* of the launch: those from there on need not run, for the one before has failed */
    u32 now;            /* the clock of shared.c */
    u32 store_id;       /* counts store instructions, of all CTAs that have this memory one after the other */
    u32 idle_polls;     /* of mbarriers, since anything happened */
    u32 phase;          /* of the cluster's barrier, counted from 1 */
    u32 n_arrived;      /* warps */
    u32 *joined;        /* what those who arrived have seen */
    u32 *released;      /* of this, what came before the last completed phase */
    struct taken *taken;
    u32 n_taken, room_taken;
};

struct cta {
    const struct launch *launch;
    const struct kernel *kernel;
    struct cluster *cluster;
    u32 rank; /* in it */
    u64 index;
    bool is_parallel;     /* other threads run other CTAs of this launch */
    bool has_ended;       /* its shared memory is gone */
    bool has_waited;      /* for the grids ahead: until then global memory is theirs */
    bool lets_next_begin; /* has said so, when it had */
    u32 id[3];
    struct warp warps[MAX_WARPS];
    u32 n_warps, n_agents;
    u32 *clocks;          /* what its warps and barriers point into */
    struct visit *visits; /* the last access to its shared memory by each agent of other CTAs */
    u8 *shared, *params;
    u32 shared_bytes;
    struct shadow shadow;
    struct hopper *hopper; /* NULL: the kernel has nothing of it */
    struct barrier barriers[N_BARRIERS];
    u64 steps, random;
    u32 patience;               /* accesses until the next switch of warps */
    u32 late_group;             /* four warps that go on only where no other can; MAX_WARPGROUPS: none */
    struct allocation **cached; /* per instruction, the allocation it last touched */
    struct tgemu_counters *counters;
    struct report *report;
};

/* -- reports --------------------------------------------------------------------------------- */
/* X(id, name, CUresult) */
#define REPORT_KINDS(X)                                                                                                \
    X(OUT_OF_BOUNDS, "out-of-bounds", 700)                                                                             \
    X(MISALIGNED, "misaligned", 716)                                                                                   \
    X(SHARED_RACE, "shared-race", 719)                                                                                 \
    X(GLOBAL_RACE, "global-race", 719)                                                                                 \
    X(LANE_CONFLICT, "lane-conflict", 719)                                                                             \
    X(UNWRITTEN, "unwritten-read", 719)                                                                                \
    X(IN_FLIGHT, "in-flight", 719)                                                                                     \
    X(BARRIER, "barrier-mismatch", 719)                                                                                \
    X(MBARRIER, "mbarrier", 719)                                                                                       \
    X(CLUSTER, "cluster", 719)                                                                                         \
    X(PROXY, "proxy", 719)                                                                                             \
    X(OVERLAP, "overlap", 719)                                                                                         \
    X(TENSOR_MAP, "tensor-map", 719)                                                                                   \
    X(BOX, "box", 715)                                                                                                 \
    X(WGMMA, "wgmma", 719)                                                                                             \
    X(DIVERGENT, "divergent", 719)                                                                                     \
    X(DEADLOCK, "deadlock", 702)                                                                                       \
    X(STEP_LIMIT, "step-limit", 702)                                                                                   \
    X(ARITHMETIC, "arithmetic", 719)                                                                                   \
    X(TRAP, "trap", 719)                                                                                               \
    X(INVALID_PTX, "invalid-ptx", 218)                                                                                 \
    X(LAUNCH, "launch", 1)

enum report_kind {
#define X(id, name, result) REPORT_##id,
    REPORT_KINDS(X)
#undef X
};

struct report {
    bool is_set;
    enum report_kind kind;
    char text[3072];
};

/* report.c */
int report_result(enum report_kind kind);
void report_set(struct report *r, enum report_kind kind, const char *format, ...) __attribute__((format(printf, 3, 4)));
void fault(struct warp *w, enum report_kind kind, int lane, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void describe_insn(char *out, size_t size, const struct kernel *k, u32 serial);

/* parse.c */
bool text_is_ptx(const char *text);
struct module *module_parse(const char *text, size_t size, struct memory *memory, struct report *r);
void module_free(struct module *m, struct memory *memory);
bool module_has_memory(const struct module *m); /* variables of its own */
bool module_find_global(const struct module *m, const char *name, u64 *address, u64 *bytes);

/* cfg.c */
void find_reconvergence(struct kernel *k);

/* access.c */
enum {
    ACCESS_READ = 1,
    ACCESS_WRITE = 2,
    ACCESS_STRONG = 4,
    ACCESS_ASYNC = 8,
    ACCESS_ARRIVAL = 16,
    ACCESS_PROXY = 32 /* through the async proxy */
};
struct place {
    u64 address; /* in its space */
    u32 space;
    struct cta *cta; /* shared memory: whose */
};
u8 *resolve_access(struct warp *w, const struct insn *in, int lane, u32 bytes, int what, struct place *p);
u32 generic_space(u64 *address);

/* atomic.c */
void atomic_add(u8 *p, u32 type, u64 value);

/* memory.c */
struct allocation *memory_alloc(struct memory *m, u64 bytes);
struct allocation *memory_find(const struct memory *m, u64 address, u64 bytes);
bool allocation_holds(const struct allocation *a, u64 address, u64 bytes);
const u8 *global_range(struct warp *w, const struct insn *in, u64 address, u32 bytes);
void memory_release(struct memory *m, struct allocation *a);
void memory_clear(struct memory *m);
void memory_mark(struct allocation *a, u64 address, u64 bytes);
u8 *global_access(struct warp *w, const struct insn *in, int lane, u64 address, u32 bytes, int what);
bool global_is_written(const struct allocation *a, u64 address, u32 bytes);

/* keep.c */
void keep_drop(struct memory *m);
void keep_forget(struct memory *m, const struct allocation *a);

/* ahead.c */
void ahead_remember(const struct launch *l, bool lets_next_begin);
bool ahead_allows(struct warp *w, const struct allocation *a, int lane, u64 address, u32 bytes, int what);

/* owner.c */
bool owner_read(struct warp *w, struct allocation *a, int lane, u64 address, u32 bytes, int what);
bool owner_read_inputs(struct warp *w, struct allocation *a, u64 address, u32 bytes);
bool owner_store(struct warp *w, const struct insn *in, int lane, u64 address, u32 bytes, int what, u8 *to,
                 const u8 *value);
bool owner_counts_ctas(const struct cta *c);
void owner_forget(struct memory *m);

/* release.c */
void release_announce(struct warp *w, struct allocation *a, u64 address, u32 bytes);
bool release_take(struct warp *w, u64 address, u64 *before);
bool release_orders(const struct warp *w, u64 cta, u32 warp, u32 time);
bool release_tells_of(const struct warp *w, u64 cluster);
void release_forget(struct allocation *a);

/* shared.c */
bool shadow_init(struct cta *c);
void shadow_reset(struct cta *c);
void shadow_free(struct shadow *s);
bool is_before(const struct warp *w, u32 agent, u32 time);
u8 *shared_access(struct warp *w, struct cta *c, int lane, u64 address, u32 bytes, int what);
const u8 *shared_range(struct warp *w, int lane, u64 address, u32 bytes);
bool shared_store_conflicts(struct warp *w, struct cta *c, int lane, u32 offset, u32 bytes, const u8 *old,
                            const u8 *value);
bool shared_begin_copy(struct warp *w, struct cta *c, u32 lane, u32 offset, u32 bytes, u32 agent);
void shared_mark_unwritten(struct cta *c, u32 offset, u32 bytes);
bool shared_check_read(struct warp *w, struct cta *c, int lane, u32 g, int what);
void shared_note_reads(struct warp *w, u32 offset, u32 bytes);
void shared_set_writer(struct cta *c, u32 offset, u32 bytes, u64 word, u32 at);
void count_wavefronts(struct cta *c, const u64 *address, u32 mask, u32 bytes);

/* sync.c */
void barriers_reset(struct cta *c);
void barriers_check_stuck(struct cluster *k);
void clock_join(u32 *to, const u32 *from, u32 n);
void update_seen_all(struct warp *w);
bool is_convergent(struct warp *w, const struct insn *in, u32 mask);

/* cluster.c */
u64 cluster_bits(const struct cta *c);
bool is_near(const struct warp *w, u64 address);
enum { RANK_SHIFT = 24 };
static const u64 NO_RANK = 0xff; /* of addresses that are no CTA's of a cluster */

/* An address of shared::cta without the CTA's rank; another's, or in a cluster one without, is left as one of no place. */
static inline u64 near_address(const struct warp *w, u64 address)
{
    const u64 rank = w->cta->rank + 1ull;
    if (address >> RANK_SHIFT == rank)
        return address - (rank << RANK_SHIFT);
    return w->cta->cluster->n == 1 ? address : address | NO_RANK << RANK_SHIFT;
}

struct cta *cluster_target(struct warp *w, int lane, u64 *address);
bool cluster_lets_visit(struct warp *w, const struct cta *c, int lane);
void cluster_note_visit(struct cta *c, u32 agent, u32 at);
void cluster_check_barrier(struct cluster *k);
void cluster_end_cta(struct cta *c);

/* async.c */
void async_reset(struct warp *w);
const char *async_describe(const struct cta *c, u32 offset, char *out, size_t size);

/* warp.c */
void cluster_run(struct cluster *k);
u32 random_below(struct cta *c, u32 n);

/* launch.c */
void launch_run(const struct launch *l, struct report *r, struct tgemu_counters *counters);
void counters_add(struct tgemu_counters *sum, const struct tgemu_counters *x);

static inline u32 *row32(const struct warp *w, u32 operand)
{
    return w->rows + (size_t)OPERAND_ROW(operand) * LANES;
}

static inline u64 *row64(const struct warp *w, u32 operand)
{
    return (u64 *)(void *)row32(w, operand);
}

static inline u32 pred_get(const struct warp *w, u32 operand)
{
    return w->preds[operand >> 1] ^ (0u - (operand & 1));
}

static inline void pred_set(struct warp *w, u32 operand, u32 mask, u32 value)
{
    w->preds[operand >> 1] = (w->preds[operand >> 1] & ~mask) | (value & mask);
}

static inline u64 operand_value(const struct warp *w, u32 operand, int lane)
{
    return OPERAND_BITS(operand) == 64 ? row64(w, operand)[lane] : row32(w, operand)[lane];
}

/* Memory operands are two: the base, and its offset. */
static inline u64 address_of(const struct warp *w, const struct insn *in, u32 k, int lane)
{
    return operand_value(w, in->op[k], lane) + (u64)(s64)(s32)in->op[k + 1];
}

static inline void operand_store(struct warp *w, u32 operand, int lane, u64 value)
{
    if (OPERAND_BITS(operand) == 64)
        row64(w, operand)[lane] = value;
    else
        row32(w, operand)[lane] = OPERAND_BITS(operand) == 16 ? (u16)value : (u32)value;
}

/* Global memory may be touched by several threads: a kernel that races there must not make its
 * emulator race. Elements of 1, 2, 4 or 8 bytes, aligned. */
static inline u64 global_load(const u8 *p, u32 bytes)
{
    const void *q = p;
    switch (bytes) {
    case 1:
        return __atomic_load_n(p, __ATOMIC_RELAXED);
    case 2:
        return __atomic_load_n((const u16 *)q, __ATOMIC_RELAXED);
    case 4:
        return __atomic_load_n((const u32 *)q, __ATOMIC_RELAXED);
    default:
        return __atomic_load_n((const u64 *)q, __ATOMIC_RELAXED);
    }
}

static inline void global_store(u8 *p, u32 bytes, u64 x)
{
    void *q = p;
    switch (bytes) {
    case 1:
        __atomic_store_n(p, (u8)x, __ATOMIC_RELAXED);
        return;
    case 2:
        __atomic_store_n((u16 *)q, (u16)x, __ATOMIC_RELAXED);
        return;
    case 4:
        __atomic_store_n((u32 *)q, (u32)x, __ATOMIC_RELAXED);
        return;
    default:
        __atomic_store_n((u64 *)q, x, __ATOMIC_RELAXED);
    }
}

static inline void full_fence(void)
{
#ifdef __SANITIZE_THREAD__ /* which does not know fences; on x86 this is one, and hides no race */
    u32 any = 0;
    __atomic_fetch_add(&any, 1, __ATOMIC_RELAXED);
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* The number in its cluster of one of a CTA's agents. */
static inline u32 agent_of(const struct cta *c, u32 agent)
{
    return c->rank * CTA_AGENTS + agent;
}

static inline bool is_warp(u32 agent)
{
    return agent % CTA_AGENTS < MAX_WARPS;
}

/* The CTA of an agent. */
static inline struct cta *cta_of(const struct cta *c, u32 agent)
{
    return c->cluster->cta[agent / CTA_AGENTS];
}

static inline int first_lane(u32 mask)
{
    return __builtin_ctz(mask);
}

#define FOR_LANES(lane, mask)                                                                                          \
    for (u32 rest_##lane = (mask), lane = 0; rest_##lane && (lane = (u32)__builtin_ctz(rest_##lane), 1);               \
         rest_##lane &= rest_##lane - 1)

#endif
