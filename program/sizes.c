/* program/sizes.c - what the formulas of a program come to for the sizes of one call.
 *
 * All arithmetic is 64-bit and saturates: a product too large to represent is INT64_MAX, which
 * every limit in tg_sizes_check refuses. So there is one path, used before and after the check. */
#include "program/fail.h"
#include "program/tensor.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static const int64_t max_size = INT32_MAX;         /* kernels receive sizes as u32 */
static const int64_t max_grid = INT32_MAX;         /* grid.x of CUDA */
static const int64_t max_bytes = INT64_C(1) << 56; /* more than any address space */
static const uint64_t workspace_alignment = UINT64_C(256);

/* Of two sizes that are not negative. Small ones do without the division, which is most of the time of a launch. */
static int64_t multiply(int64_t a, int64_t b)
{
    if ((a | b) >> 31 == 0)
        return a * b;
    return b != 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

static int64_t divide_up(int64_t value, int64_t by)
{
    return by == 1 ? value : value / by + (value % by != 0);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A sequence shorter than L must not launch empty blocks; a decode step is one chunk whatever L is.
 */
static int64_t chunk_size(const tg_program *program, const tg_sizes *sizes)
{
    int64_t chunk = sizes->chunk ? sizes->chunk : program->chunk_default;
    int64_t multiple = program->chunk_multiple;
    int64_t whole = divide_up(sizes->tokens, multiple) * multiple;
    return program->max_tokens ? whole : least(chunk, whole);
}

/* Packed: every sequence may end in a chunk that is not full, wherever the others begin. */
static int64_t count_chunks(const tg_program *program, const tg_sizes *sizes)
{
    int64_t chunk = chunk_size(program, sizes);
    if (chunk == 0)
        return 0;
    return program->packed ? sizes->tokens / chunk + sizes->batch : divide_up(sizes->tokens, chunk);
}

int64_t tg_size_value(const tg_program *program, const tg_sizes *sizes, uint32_t size)
{
    switch ((tg_size)size) {
    case TG_SIZE_CONST:
        return 1;
    case TG_SIZE_BATCH:
        return sizes->batch;
    case TG_SIZE_HEADS:
        return sizes->heads;
    case TG_SIZE_TOKENS:
        return sizes->tokens;
    case TG_SIZE_CHUNKS:
        return count_chunks(program, sizes);
    case TG_SIZE_CHUNK:
        return chunk_size(program, sizes);
    case TG_SIZE_FIRST:
        break;
    }
    return 0;
}

int64_t tg_terms_value(const tg_program *program, const tg_sizes *sizes, const tg_term *terms, uint32_t n_terms)
{
    int64_t product = 1;
    for (uint32_t i = 0; i < n_terms; i++) {
        int64_t size = tg_size_value(program, sizes, terms[i].size);
        product = multiply(product, multiply(divide_up(size, terms[i].div), terms[i].mul));
    }
    return product;
}

int64_t tg_tensor_extent(const tg_program *program, const tg_sizes *sizes, uint32_t tensor, uint32_t axis)
{
    if (lacks_axis(program, tensor, axis))
        return 1;
    if (axis == 0)
        return sizes->batch;
    if (axis == 1)
        return program->tensors[tensor].flags & TG_SHARED ? sizes->heads / program->group : sizes->heads;
    switch ((tg_axis)program->tensors[tensor].axes[axis - 2]) {
    case TG_T:
        return sizes->tokens;
    case TG_CHUNK:
        return divide_up(tg_size_value(program, sizes, TG_SIZE_CHUNKS),
                         program->tensors[tensor].segment ? program->tensors[tensor].segment : 1);
    case TG_DQK:
        return program->dqk;
    case TG_DHV:
        return program->dhv;
    case TG_PARTS:
        return program->tensors[tensor].parts;
    case TG_CUTS:
        return sizes->batch + 1;
    case TG_POSITION:
        return program->chunk_default;
    case TG_AXIS_NONE:
    case TG_N_AXES:
        break;
    }
    return 1;
}

static int64_t tensor_bytes(const tg_program *program, const tg_sizes *sizes, uint32_t tensor)
{
    const uint8_t *const axes = program->tensors[tensor].axes;
    int64_t bytes = tg_dtype_bytes((tg_dtype)program->tensors[tensor].dtype);
    for (uint32_t axis = 0; axis < 2 || (axis < 2 + TG_MAX_AXES && axes[axis - 2] != TG_AXIS_NONE); axis++)
        bytes = multiply(bytes, tg_tensor_extent(program, sizes, tensor, axis));
    return bytes;
}

/* Those with a place of their own lie one behind the other, each rounded up; then the others are known too. All of them,
 * below max_bytes each as tg_sizes_check requires, come to less than 2^63. */
uint64_t tg_workspace_offsets(const tg_program *program, const tg_sizes *sizes, uint64_t offsets[TG_MAX_TENSORS])
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < program->n_tensors; i++) {
        offsets[i] = total;
        if (!is_workspace(&program->tensors[i]) || program->tensors[i].place)
            continue;
        uint64_t bytes = (uint64_t)tensor_bytes(program, sizes, i);
        total += (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
    }
    for (uint32_t i = 0; i < program->n_tensors; i++)
        if (program->tensors[i].place)
            offsets[i] = offsets[program->tensors[i].place - 1];
    return total;
}

uint64_t tg_workspace_bytes(const tg_program *program, const tg_sizes *sizes)
{
    uint64_t offsets[TG_MAX_TENSORS];
    return tg_workspace_offsets(program, sizes, offsets);
}

uint64_t tg_workspace_offset(const tg_program *program, const tg_sizes *sizes, uint32_t tensor)
{
    uint64_t offsets[TG_MAX_TENSORS];
    (void)tg_workspace_offsets(program, sizes, offsets);
    return offsets[tensor];
}

int tg_program_tensor(const tg_program *program, const char *name)
{
    for (uint32_t i = 0; i < program->n_tensors; i++)
        if (strcmp(program->tensors[i].name, name) == 0)
            return (int)i;
    return -1;
}

int tg_tensor_is_slot(const tg_program *program, uint32_t tensor)
{
    const tg_tensor_info *info = &program->tensors[tensor];
    return program->pooled && !is_workspace(info) && is_of_sequence(info) && !(info->flags & TG_NO_BATCH) &&
           info->dtype != TG_I32;
}

/* "S0" for "S" and "dS" for "dS0": the two ends of a state differ by a final 0. */
static bool is_other_end(const char *name, const char *other)
{
    size_t n = strlen(name), m = strlen(other);
    const char *longer = n > m ? name : other;
    size_t shorter = n > m ? m : n;
    return (n > m ? n - m : m - n) == 1 && longer[shorter] == '0' && memcmp(name, other, shorter) == 0;
}

static bool has_same_axes(const tg_tensor_info *a, const tg_tensor_info *b)
{
    const int missing = TG_NO_BATCH | TG_SHARED | TG_NO_HEADS;
    return (a->flags & missing) == (b->flags & missing) && memcmp(a->axes, b->axes, sizeof a->axes) == 0;
}

int tg_tensor_source(const tg_program *program, uint32_t tensor)
{
    const tg_tensor_info *out = &program->tensors[tensor];
    if (!(out->flags & TG_OUT) || (out->flags & TG_IN))
        return TG_SOURCE_NONE;
    if (out->flags & TG_NO_BATCH) /* also without sequences it has elements */
        return TG_SOURCE_ZERO;
    if (!is_of_sequence(out))
        return TG_SOURCE_NONE;
    for (uint32_t i = 0; i < program->n_tensors; i++) {
        const tg_tensor_info *in = &program->tensors[i];
        if ((in->flags & TG_IN) && is_other_end(out->name, in->name) && has_same_axes(in, out))
            return (int)i;
    }
    return TG_SOURCE_ZERO;
}

static bool check_range(const char *field, int64_t value, int64_t least_value, const tg_sink *sink)
{
    if (value >= least_value && value <= max_size)
        return true;
    tg_report(sink, TG_ERROR, "TG0701", NULL, 0, NULL, "sizes.%s: expected %" PRId64 "..%" PRId64 ", found %" PRId64,
              field, least_value, max_size, value);
    return false;
}

static bool check_chunk(const tg_program *program, int64_t chunk, const tg_sink *sink)
{
    if (program->chunk_most && chunk > program->chunk_most) {
        tg_report(sink, TG_ERROR, "TG0701", NULL, 0, "0 means the program's default",
                  "sizes.chunk: expected at most %" PRIu32 ", found %" PRId64, program->chunk_most, chunk);
        return false;
    }
    if (chunk % program->chunk_multiple == 0)
        return true;
    tg_report(sink, TG_ERROR, "TG0701", NULL, 0, "0 means the program's default",
              "sizes.chunk: expected a multiple of %" PRIu32 ", found %" PRId64, program->chunk_multiple, chunk);
    return false;
}

static bool check_heads(const tg_program *program, int64_t heads, const tg_sink *sink)
{
    if (heads % program->group == 0)
        return true;
    tg_report(sink, TG_ERROR, "TG0703", NULL, 0, NULL,
              "sizes.heads: expected a multiple of %" PRIu32 ", the heads of a group, found %" PRId64, program->group,
              heads);
    return false;
}

static bool check_tokens(const tg_program *program, const tg_sizes *sizes, const tg_sink *sink)
{
    const int64_t most = program->max_tokens * (program->packed ? sizes->batch : 1);
    if (program->max_tokens && sizes->tokens > most) {
        tg_report(sink, TG_ERROR, "TG0704", NULL, 0, "longer calls need another schedule",
                  "sizes.tokens: expected at most %" PRId64 ": schedule %s is for decode steps, found %" PRId64, most,
                  program->schedule, sizes->tokens);
        return false;
    }
    if (program->packed && sizes->tokens > 0 && sizes->batch == 0) {
        tg_report(sink, TG_ERROR, "TG0705", NULL, 0, "sizes.batch is the number of sequences",
                  "sizes.tokens: expected 0 in a packed call of no sequences, found %" PRId64, sizes->tokens);
        return false;
    }
    return true;
}

/* Beyond the other sizes only when packed. */
static bool check_chunks(const tg_program *program, const tg_sizes *sizes, const tg_sink *sink)
{
    int64_t chunks = tg_size_value(program, sizes, TG_SIZE_CHUNKS);
    if (chunks <= max_size)
        return true;
    tg_report(sink, TG_ERROR, "TG0702", NULL, 0, "split the batch, or use a larger chunk",
              "chunks: expected at most %" PRId64 ", found %" PRId64, max_size, chunks);
    return false;
}

static bool check_products(const tg_program *program, const tg_sizes *sizes, const tg_sink *sink)
{
    bool ok = check_chunks(program, sizes, sink);
    for (uint32_t i = 0; i < program->n_kernels; i++) {
        const tg_kernel *kernel = &program->kernels[i];
        int64_t blocks = tg_terms_value(program, sizes, kernel->grid, kernel->n_grid);
        if (blocks > max_grid) {
            ok = false;
            tg_report(sink, TG_ERROR, "TG0702", NULL, 0, "split the batch, or use a larger chunk",
                      "kernel %s: expected at most %" PRId64 " blocks, found %" PRId64, kernel->name, max_grid, blocks);
        } else if (kernel->cluster > 1 && blocks % kernel->cluster != 0) {
            ok = false;
            tg_report(sink, TG_ERROR, "TG0706", NULL, 0, "these sizes need another schedule",
                      "kernel %s: expected a multiple of %d blocks, the cluster, found %" PRId64, kernel->name,
                      kernel->cluster, blocks);
        }
    }
    for (uint32_t i = 0; i < program->n_tensors; i++) {
        int64_t bytes = tensor_bytes(program, sizes, i);
        if (bytes <= max_bytes)
            continue;
        ok = false;
        tg_report(sink, TG_ERROR, "TG0702", NULL, 0, NULL,
                  "tensor %s: expected at most %" PRId64 " bytes, found %" PRId64, program->tensors[i].name, max_bytes,
                  bytes);
    }
    return ok;
}

tg_status tg_sizes_check(const tg_program *program, const tg_sizes *sizes, const tg_sink *sink)
{
    if (!program || !sizes)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0701", NULL, "tg_sizes_check: %s is NULL",
                       program ? "sizes" : "program");
    bool ok = check_range("batch", sizes->batch, 0, sink);
    ok &= check_range("heads", sizes->heads, 1, sink) && check_heads(program, sizes->heads, sink);
    ok &= check_range("tokens", sizes->tokens, 0, sink) && check_tokens(program, sizes, sink);
    ok &= check_range("chunk", sizes->chunk, 0, sink) && check_chunk(program, sizes->chunk, sink);
    return ok && check_products(program, sizes, sink) ? TG_OK : TG_E_ARGUMENT;
}
