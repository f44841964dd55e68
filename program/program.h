/* program/program.h - the compiled program: the one thing that crosses from compiler to runtime.
 *
 * The compiler produces a tg_program, the runtime loads one, a bundle file and a generated C file
 * are one written down. It holds kernel images and, as data, everything that is needed to launch
 * them: grid, arguments and workspace as formulas of the run-time sizes. dqk, dhv, dtypes and tile
 * sizes are baked into the images; B, NH, T, the chunk size, strides and pointers are run-time
 * values.
 *
 * This header is a leaf: plain C11 (and C++), no dependency on LLVM, CUDA or the rest of Tegula. */
#ifndef TEGULA_PROGRAM_H
#define TEGULA_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TG_API __attribute__((visibility("default")))
#else
#define TG_API
#endif

/* Result of every call that can fail. Values are frozen: new ones are appended. */
typedef enum tg_status {
    TG_OK = 0,
    TG_E_ARGUMENT = 1,    /* an argument of the call is wrong (null, out of range, misaligned) */
    TG_E_DECLARATION = 2, /* the algorithm, schedule or tuning space has mistakes */
    TG_E_UNSUPPORTED = 3, /* well formed, but this target or shape cannot do it */
    TG_E_COMPILE = 4,     /* LLVM or ptxas refused what we generated: a defect of ours */
    TG_E_NO_DRIVER = 5,   /* the driver library cannot be opened, or is too old */
    TG_E_NO_DEVICE = 6,   /* no such GPU */
    TG_E_DRIVER = 7,      /* a driver call failed; the message has its name and text */
    TG_E_MEMORY = 8,      /* out of host or device memory */
    TG_E_FILE = 9,        /* a file cannot be read or written */
    TG_E_FORMAT = 10,     /* a bundle, cache or wisdom file is damaged or of another version */
    TG_E_VERSION = 11,    /* struct_size or version says the caller was built for something newer */
    TG_E_NUMERICS = 12,   /* a result is outside its tolerance */
} tg_status;

typedef enum tg_severity { TG_NOTE, TG_WARNING, TG_ERROR } tg_severity;

/* One message. Strings live only during the sink's call. */
typedef struct tg_diag {
    tg_severity severity;
    const char *code;    /* stable, "TG0412"; listed in the codes.def of the folder that reports it */
    const char *file;    /* where the user wrote the statement, or the file read; may be NULL */
    int line;            /* 0 when there is none */
    const char *message; /* what is wrong: the field, what was expected, what was found */
    const char *hint;    /* what to do about it; may be NULL */
} tg_diag;

/* Receives diagnostics. The library never prints. Called on the thread that made the failing call.
 */
typedef struct tg_sink {
    void (*emit)(void *user, const tg_diag *diag); /* NULL: messages are dropped */
    void *user;
} tg_sink;

/* Formats one message and hands it to the sink. `hint` may be NULL. */
TG_API void tg_report(const tg_sink *sink, tg_severity severity, const char *code, const char *file, int line,
                      const char *hint, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 7, 8)))
#endif
    ;

/* What a status means, for people: "wrong argument". Never NULL. */
TG_API const char *tg_status_name(tg_status status);

/* Element types. TG_IO stands, in declarations only, for the type of the inputs (bf16, f16 or f32).
 * TG_F32X2 is an unevaluated sum hi + lo of two floats, interleaved, 8 bytes: cumulative log gates
 * need more than 24 bits when |b| is in the thousands. */
typedef enum tg_dtype {
    TG_DTYPE_NONE = 0,
    TG_IO = 1,
    TG_BF16 = 2,
    TG_F16 = 3,
    TG_F32 = 4,
    TG_F32X2 = 5,
    TG_I32 = 6, /* sequence boundaries and state indices; an int64 tensor is one with stride 2 */
} tg_dtype;

TG_API uint32_t tg_dtype_bytes(tg_dtype dtype); /* 0 for TG_IO and unknown values */
TG_API const char *tg_dtype_name(tg_dtype dtype);

/* Axes of a tensor in memory. Every tensor is [B, NH, axes...], less what its flags say; unused
 * trailing axes are TG_AXIS_NONE. */
typedef enum tg_axis {
    TG_AXIS_NONE = 0,
    TG_T = 1,        /* tokens of the sequence */
    TG_CHUNK = 2,    /* chunks of the sequence: ceil(T / L); packed: T / L + B, each sequence has a run of them */
    TG_DQK = 3,      /* key and query width */
    TG_DHV = 4,      /* value width */
    TG_PARTS = 5,    /* partial sums of different thread blocks, added up by the reader; workspace only */
    TG_CUTS = 6,     /* B + 1: the boundaries of packed sequences */
    TG_POSITION = 7, /* positions of a chunk, as many as the program's only chunk size: workspace, or kept */
    TG_N_AXES = 8,
} tg_axis;

enum { TG_MAX_AXES = 3 };

/* Flags of a tensor. Neither TG_IN nor TG_OUT: a workspace tensor that one kernel writes for
 * another. */
enum {
    TG_IN = 1,
    TG_OUT = 2,
    TG_OPTIONAL = 4,
    TG_NO_BATCH = 8,  /* one for all sequences (a parameter of the head): extent 1 and stride 0 on axis B */
    TG_SHARED = 16,   /* one for every `group` heads: NH / group on axis NH (keys of grouped heads) */
    TG_NO_HEADS = 32, /* one for all heads: extent 1 and stride 0 on axis NH */
    TG_STEADY = 64,   /* of an intermediate of chunks: the same for all of a sequence, but for rounding */
};

typedef struct tg_tensor_info {
    char name[16];             /* an identifier, unique in the program */
    uint8_t dtype;             /* tg_dtype, never TG_IO */
    uint8_t flags;             /* TG_IN, TG_OUT, TG_OPTIONAL, TG_NO_BATCH, TG_SHARED, TG_NO_HEADS */
    uint8_t axes[TG_MAX_AXES]; /* tg_axis after [B, NH] */
    uint8_t parts;             /* extent of TG_PARTS where that is an axis, else 0 */
    uint16_t segment; /* chunks to one entry of TG_CHUNK, which then every packed sequence has as many of as the
                                * longest could need; 0: each chunk has its own */
    /* n + 1: of workspace, where the states of output n, a final state, are from one piece of the call to the next. It stands for
     * output n in all pieces but the last, and for the initial state in all but the first. 0: it is none. */
    uint8_t between;
    uint8_t place; /* n + 1: of workspace, in the place of tensor n, another one of the same size which no kernel
                                * uses any more where one uses this, itself with a place of its own; 0: its own place */
} tg_tensor_info;

/* A run-time size. */
typedef enum tg_size {
    TG_SIZE_CONST = 0,  /* 1 */
    TG_SIZE_BATCH = 1,  /* B */
    TG_SIZE_HEADS = 2,  /* NH */
    TG_SIZE_TOKENS = 3, /* T */
    TG_SIZE_CHUNKS = 4, /* ceil(T / L); packed: floor(T / L) + B slots, L being TG_SIZE_CHUNK; 0 if T is 0 */
    TG_SIZE_CHUNK = 5,  /* min(L, T rounded up to chunk_multiple); of a decode step the latter: one chunk */
    /* Of a call that is taken in pieces the first chunk of the piece, whose tokens and chunks the other sizes are then of; else 0. */
    TG_SIZE_FIRST = 6,
} tg_size;

/* One factor of a product: ceil(size / div) * mul. A constant is TG_SIZE_CONST with its value in
 * mul. */
typedef struct tg_term {
    uint32_t size; /* tg_size */
    uint32_t div;  /* >= 1 */
    uint32_t mul;  /* >= 1 */
} tg_term;

enum { TG_MAX_TERMS = 6 };

/* What a kernel parameter holds. Parameters are passed in this order, naturally aligned. The
 * strides of an absent tensor are 0. */
typedef enum tg_arg_kind {
    TG_ARG_POINTER = 0, /* u64: address of tensor `index` (0 when an optional one is absent) */
    TG_ARG_STRIDE = 1,  /* i64: elements between neighbours of tensor `index` on axis `axis` (0 B, 1
                           NH, 2.. axes) */
    TG_ARG_SIZE = 2,    /* u32: tg_size `index` */
    TG_ARG_SCALAR = 3,  /* f32: scalar `index` of the program */
    TG_ARG_MAP = 4,     /* 128 bytes by value, aligned to 64: the kernel's tensor map `axis`, which is
                           of tensor `index`; zeros when that is absent */
} tg_arg_kind;

/* A number that every call may choose: "scale", "tau". */
typedef struct tg_scalar_info {
    char name[16]; /* an identifier, unique in the program */
    float value;   /* when the caller gives none */
} tg_scalar_info;

typedef struct tg_arg_desc {
    uint8_t kind;  /* tg_arg_kind */
    uint8_t index; /* tensor, tg_size or scalar */
    uint8_t axis;  /* of a stride; number of a map */
    uint8_t reserved;
} tg_arg_desc;

/* How the 16-byte pieces of a box are permuted in shared memory; the values are the driver's. */
typedef enum tg_swizzle {
    TG_SWIZZLE_NONE = 0,
    TG_SWIZZLE_32 = 1,
    TG_SWIZZLE_64 = 2,
    TG_SWIZZLE_128 = 3,
} tg_swizzle;

/* Recipe of a tensor map: what the driver's encoder is given, but for the strides of the call. The
 * tensor is [B, NH, T, width]; its columns are taken in spans. One instruction moves the box
 *
 *     columns x rows x spans
 *
 * and shared memory has it in this order, columns fastest: `spans` tiles of rows x columns, one
 * behind the other, swizzled. A map has always five dimensions, fastest first; a kernel gives the
 * coordinates in this order:
 *
 *     0  column in the span: 0           extent columns
 *     1  token                           extent T; packed: of all sequences together
 *     2  span: column / columns          extent width / columns
 *     3  head: h; TG_SHARED h / group; TG_NO_HEADS 0
 *     4  sequence: b; packed or TG_NO_BATCH 0
 *
 * A width that spans do not divide has none: one instruction moves one of them, and
 *
 *     0  column                          extent width
 *     2  0                               extent 1
 *
 * What lies outside is loaded as zeros and not stored. The end of a packed sequence inside T is no
 * bound: behind it lies the next one. */
typedef struct tg_map_desc {
    uint8_t tensor;   /* with axes { TG_T, TG_DQK or TG_DHV }, of bf16, f16 or f32 */
    uint8_t swizzle;  /* tg_swizzle */
    uint16_t columns; /* of a span; a multiple of 16 bytes, at most those of the swizzle, without one 128 */
    uint16_t rows;    /* tokens, 1..256 */
    uint16_t spans;   /* 1..256; may reach beyond the width; 1 where columns do not divide it. The box fits
                         in shared memory */
} tg_map_desc;

enum { TG_MAX_ARGS = 128, TG_MAX_TENSORS = 64, TG_MAX_KERNELS = 32, TG_MAX_SCALARS = 4 };
enum { TG_MAX_MAPS = 9, TG_MAX_CLUSTER = 8, TG_MAX_PIECES = 8 };

/* May the kernel start before the work ahead of it on the stream has ended? */
typedef enum tg_overlap {
    TG_OVERLAP_NONE = 0,
    TG_OVERLAP_WAITS = 1, /* yes, and it waits for that (griddepcontrol.wait) before it touches memory */
    /* In all pieces of a call but the first (tg_program.pieces). There the kernel ahead says when (griddepcontrol.launch_dependents).
     * This one touches nothing that that writes, writes nothing that it reads, and waits for it at its end, for those behind. */
    TG_OVERLAP_BESIDE = 2,
} tg_overlap;

/* One kernel: image, launch geometry, arguments. grid.x is the product of `grid`; y and z are 1. */
typedef struct tg_kernel {
    char name[64];   /* entry point: an identifier */
    const char *ptx; /* NUL-terminated; ptx_bytes without the NUL; never NULL */
    uint64_t ptx_bytes;
    const void *cubin; /* NULL when ptxas was not at hand */
    uint64_t cubin_bytes;
    uint32_t threads;      /* block size in x */
    uint32_t shared_bytes; /* dynamic shared memory */
    uint32_t n_grid;
    tg_term grid[TG_MAX_TERMS];
    uint32_t n_args;
    tg_arg_desc args[TG_MAX_ARGS];
    uint32_t n_maps;
    tg_map_desc maps[TG_MAX_MAPS]; /* each is passed as one argument */
    /* Maps, clusters and overlap need sm_90. */
    uint8_t cluster; /* thread blocks of a cluster, in x; 0 or 1: none. Their number must divide the grid. */
    uint8_t overlap; /* tg_overlap */
    /* Facts for people; 0 where unknown. */
    uint32_t registers;   /* per thread, as ptxas says */
    uint32_t spill_bytes; /* as ptxas says */
    uint32_t n_mma;       /* matrix instructions in the PTX text */
} tg_kernel;

/* Where states of sequences are. A slot is a number below 2^31; a negative one is none: nothing is read there, so that the
 * sequence begins from zero, and nothing is written. A sequence all of whose slots are negative is padding: nothing at all of
 * it is read or written. What one sequence writes no other may read. */
typedef enum tg_pooling {
    TG_POOL_NONE = 0, /* sequence b has entry b of every state */
    /* Of a decode step of packed or counted sequences one without tokens keeps its state where it is: it does not move. */
    TG_POOL_SLOTS = 1, /* states are slots of the caller's pool: the input "index" [B] says which one each sequence has.
                          Initial and final state may be the same memory */
    TG_POOL_MOVES = 2, /* inputs are read in slot index[b], outputs written to slot index_out[b], an input [B] too */
    TG_POOL_TOKENS =
        3, /* ... of a decode step: to slot index_out[b, t], an input [B, T], as they are behind token t. Padding
                           are sequences without tokens */
    TG_POOL_CHUNKS =
        4, /* ... of a forward: to slot index_out[b, c], an input [B, chunks], as they are behind chunk c, of
                           which the last is the end. Padding are sequences without tokens */
} tg_pooling;

/* A compiled program. Immutable once built; may be read from many threads. */
typedef struct tg_program {
    uint32_t struct_size; /* sizeof(tg_program) */
    uint32_t version;     /* TG_PROGRAM_VERSION */
    char variant[32];
    char schedule[32];
    char arch[16];      /* "sm_80": the oldest GPU the images run on */
    uint8_t arch_exact; /* 1: only GPUs of exactly this arch ("sm_90a") */
    uint8_t io_dtype;   /* TG_BF16, TG_F16 or TG_F32 */
    /* Sequences of different lengths lie one behind the other on the axis T: sizes.batch is their number,
     * sizes.tokens their sum, tensors with T or chunks have extent 1 on axis B, the others (states) one
     * entry a sequence. The input "cu" [B + 1] says where each begins; its last entry is T, or less:
     * tokens behind it are none, so that one grid does for many calls. */
    uint8_t packed;
    uint8_t pooled;      /* tg_pooling */
    uint32_t group;      /* heads that share one head of the TG_SHARED tensors; >= 1, divides NH */
    uint32_t max_tokens; /* T must not exceed this (a decode step); 0: any */
    uint32_t dqk, dhv;
    uint32_t chunk_multiple; /* the chunk size L must be a multiple of this */
    uint32_t chunk_default;  /* the chunk size the schedule was made for */
    uint32_t chunk_most;     /* L must not exceed this; 0: any */
    /* The chunks of a call are taken in so many pieces: all kernels are launched for the first, then for the next. Of n pieces the
     * i-th, counted from 0, has n - i of n (n + 1) / 2 parts of them; one without chunks is left out. 0 or 1: all at once. */
    uint32_t pieces;
    uint32_t n_tensors; /* signature first (inputs, outputs), then workspace */
    tg_tensor_info tensors[TG_MAX_TENSORS];
    uint32_t n_scalars;
    tg_scalar_info scalars[TG_MAX_SCALARS]; /* the first is "scale", which multiplies q */
    uint32_t n_kernels;                     /* launched in this order, on one stream, once a piece */
    tg_kernel kernels[TG_MAX_KERNELS];
    void *storage; /* one malloc'ed block that holds the images; NULL when they are static */
} tg_program;

enum { TG_PROGRAM_VERSION = 8 };

/* Run-time sizes of one call. */
typedef struct tg_sizes {
    int64_t batch;  /* B >= 0; packed: the number of sequences */
    int64_t heads;  /* NH >= 1: value heads; a multiple of the program's group */
    int64_t tokens; /* T >= 0; packed: of all sequences together */
    int64_t chunk;  /* L: a multiple of chunk_multiple; 0 means chunk_default */
} tg_sizes;

/* Checks the sizes against the program, which has passed tg_program_verify: every size below 2^31,
 * chunk_multiple, group, max_tokens, no tokens without sequences when packed, grid below 2^31 and a
 * multiple of the cluster, tensors below 2^56 bytes. Reports all mistakes. */
TG_API tg_status tg_sizes_check(const tg_program *program, const tg_sizes *sizes, const tg_sink *sink);

/* Value of a tg_size, and of a product of terms (saturating). Sizes must have passed
 * tg_sizes_check. */
TG_API int64_t tg_size_value(const tg_program *program, const tg_sizes *sizes, uint32_t size);
TG_API int64_t tg_terms_value(const tg_program *program, const tg_sizes *sizes, const tg_term *terms, uint32_t n_terms);

/* Elements of a tensor on one axis: 0 B, 1 NH, 2.. axes. 1 where the tensor has one entry for all
 * sequences or heads; of a slot tensor on axis B the sequences, for nobody here knows the slots. */
TG_API int64_t tg_tensor_extent(const tg_program *program, const tg_sizes *sizes, uint32_t tensor, uint32_t axis);

/* 1 when the tensor is a pool of slots, so that sequence b has that entry of it (tg_pooling) and not b: in
 * pooled programs every input and output with neither tokens nor chunks, except TG_I32 tensors and
 * those that are TG_NO_BATCH. Else 0. */
TG_API int tg_tensor_is_slot(const tg_program *program, uint32_t tensor);

/* Bytes of workspace a launch needs (0 is possible), and the offset of a workspace tensor in it.
 * Every workspace tensor starts at a multiple of 256 bytes. */
TG_API uint64_t tg_workspace_bytes(const tg_program *program, const tg_sizes *sizes);
TG_API uint64_t tg_workspace_offset(const tg_program *program, const tg_sizes *sizes, uint32_t tensor);
/* All of it at once, as a launch wants it: the offset of every workspace tensor; yields the bytes. */
TG_API uint64_t tg_workspace_offsets(const tg_program *program, const tg_sizes *sizes,
                                     uint64_t offsets[TG_MAX_TENSORS]);

/* Index of the tensor with that name, or -1. */
TG_API int tg_program_tensor(const tg_program *program, const char *name);

/* What defines tensor `tensor` in a call of no tokens, which launches nothing. An output without
 * tokens or chunks among its axes (a final state, its gradient) is a copy of the input of the same
 * axes it is the other end of: S of S0, dS0 of dS. Returns the index of that input, TG_SOURCE_ZERO
 * when there is none (then, as when the input is absent, the output is zeros) and for outputs that are
 * TG_NO_BATCH (sums over nothing), or TG_SOURCE_NONE for tensors that need no definition, among them
 * those that are input and output at once. Slots of a pool can only stay where they are. */
enum { TG_SOURCE_ZERO = -1, TG_SOURCE_NONE = -2 };
TG_API int tg_tensor_source(const tg_program *program, uint32_t tensor);

/* Structural check of a program from outside (a plugin, a parsed file): counts, indices, terminated
 * strings, launch limits. TG_E_FORMAT with a message when wrong, TG_E_VERSION when struct_size or
 * version are not of this library. */
TG_API tg_status tg_program_verify(const tg_program *program, const tg_sink *sink);

/* Frees a program made by tg_compile or tg_program_parse: `storage`, then the malloc'ed program.
 * NULL is allowed. */
TG_API void tg_program_free(tg_program *program);

/* Bundle file: the program as bytes (little endian, versioned, checksummed).
 * tg_program_bytes: `*bytes` is malloc'ed, the caller frees it. */
TG_API tg_status tg_program_bytes(const tg_program *program, void **bytes, size_t *size, const tg_sink *sink);
TG_API tg_status tg_program_parse(const void *bytes, size_t size, tg_program **program, const tg_sink *sink);

/* The program as a pair of files NAME.c and NAME.h, C11 and C++14, that load and launch with
 * nothing but the Driver API, opened by path or given as a table of functions. `*source` and
 * `*header` are malloc'ed text; `name` becomes the prefix of the functions and passes
 * tg_c_name_check. The header includes tegula_embed.h, which tg_embed_header has the text of: types
 * that all such programs share. */
TG_API tg_status tg_program_c(const tg_program *program, const char *name, char **source, char **header,
                              const tg_sink *sink);
TG_API const char *tg_embed_header(void);

/* TG_OK for a C identifier of at most 64 characters that is no keyword of C or C++ and not reserved. */
TG_API tg_status tg_c_name_check(const char *name, const tg_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
