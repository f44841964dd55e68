/* program/verify.c - the structural rules of a program, each in one place.
 *
 * Run on everything that comes from outside: parsed bundles, plugins, a program handed to the
 * writer. After it, no index in the program is out of its table, no string unterminated, no divisor
 * zero. */
#include "program/fail.h"
#include "program/tensor.h"
#include "program/verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A launch that needs more than these exists on no GPU; the loader compares with the real one. */
enum { MAX_THREADS = 1024, MAX_SHARED_BYTES = 1 << 20, MAX_WIDTH = 1 << 16, MAX_CHUNK = 1 << 24 };
enum { MAX_GROUP = 1 << 16, MAX_TOKENS = 1 << 24 };

#define REQUIRE(condition, ...) REQUIRE_CODE("TG0721", condition, __VA_ARGS__)

static bool is_terminated(const char *text, size_t capacity)
{
    return memchr(text, '\0', capacity) != NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

/* Names become C identifiers, PTX entry points and words of messages. */
static bool is_identifier(const char *text)
{
    if (!is_letter(*text))
        return false;
    while (is_letter(*text) || is_digit(*text))
        text++;
    return *text == '\0';
}

static bool is_printable(const char *text)
{
    if (*text == '\0')
        return false;
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

/* "sm_80", "sm_90a": digits, then nothing or one letter of a feature set. */
static bool is_arch(const char *text)
{
    if (strncmp(text, "sm_", 3) != 0)
        return false;
    const char *digits = text + 3;
    size_t n = strspn(digits, "0123456789");
    const char *suffix = digits + n;
    return n >= 2 && n <= 3 && (*suffix == '\0' || (strchr("af", *suffix) && suffix[1] == '\0'));
}

static tg_status verify_flags(const tg_program *program, uint32_t i, const tg_sink *sink)
{
    const tg_tensor_info *t = &program->tensors[i];
    const int all = TG_IN | TG_OUT | TG_OPTIONAL | TG_NO_BATCH | TG_SHARED | TG_NO_HEADS;
    REQUIRE((t->flags & ~all) == 0,
            "tensors[%" PRIu32 "].flags (%s): expected a combination of in, out, optional, no "
            "batch, shared and no heads, found %d",
            i, t->name, t->flags);
    REQUIRE(!(t->flags & TG_OPTIONAL) || !is_workspace(t),
            "tensors[%" PRIu32 "].flags (%s): expected optional with in or out only, found %d", i, t->name, t->flags);
    REQUIRE(!(t->flags & TG_SHARED) || !(t->flags & TG_NO_HEADS),
            "tensors[%" PRIu32 "].flags (%s): expected shared or no heads, found both", i, t->name);
    REQUIRE(is_workspace(t) || i == 0 || !is_workspace(&program->tensors[i - 1]),
            "tensors[%" PRIu32 "].flags (%s): expected the signature before all workspace tensors", i, t->name);
    return TG_OK;
}

static bool is_in_place(const tg_program *program, const tg_tensor_info *t)
{
    if (t->place > program->n_tensors)
        return false;
    const tg_tensor_info *other = &program->tensors[t->place - 1];
    return is_workspace(t) && is_workspace(other) && other->place == 0 && other->flags == t->flags &&
           other->parts == t->parts && tg_dtype_bytes((tg_dtype)other->dtype) == tg_dtype_bytes((tg_dtype)t->dtype) &&
           other->segment == t->segment && memcmp(other->axes, t->axes, sizeof t->axes) == 0;
}

/* Those of pieces come last. */
static bool is_between(const tg_program *program, uint32_t i)
{
    const tg_tensor_info *t = &program->tensors[i];
    if (t->between == 0)
        return i == 0 || program->tensors[i - 1].between == 0;
    if (program->pieces < 2 || t->between > program->n_tensors)
        return false;
    const tg_tensor_info *out = &program->tensors[t->between - 1];
    return is_workspace(t) && t->place == 0 && out->flags & TG_OUT && tg_tensor_source(program, t->between - 1u) >= 0 &&
           out->dtype == t->dtype && memcmp(out->axes, t->axes, sizeof t->axes) == 0 &&
           ((out->flags ^ t->flags) & ~(TG_IN | TG_OUT | TG_OPTIONAL)) == 0;
}

static tg_status verify_tensor(const tg_program *program, uint32_t i, const tg_sink *sink)
{
    const tg_tensor_info *t = &program->tensors[i];
    REQUIRE(is_terminated(t->name, sizeof t->name) && is_identifier(t->name),
            "tensors[%" PRIu32 "].name: expected an identifier of at most %zu characters", i, sizeof t->name - 1);
    REQUIRE(tg_program_tensor(program, t->name) == (int)i,
            "tensors[%" PRIu32 "].name: expected every name once, found %s again", i, t->name);
    REQUIRE(tg_dtype_bytes((tg_dtype)t->dtype) != 0,
            "tensors[%" PRIu32 "].dtype (%s): expected bf16, f16, f32, f32x2 or i32, found value %d", i, t->name,
            t->dtype);
    tg_status status = verify_flags(program, i, sink);
    if (status != TG_OK)
        return status;
    bool ended = false;
    for (int a = 0; a < TG_MAX_AXES; a++) {
        REQUIRE(t->axes[a] < TG_N_AXES && !(ended && t->axes[a] != TG_AXIS_NONE),
                "tensors[%" PRIu32 "].axes[%d] (%s): expected an axis below %d and none after an "
                "unused one, found %d",
                i, a, t->name, TG_N_AXES, t->axes[a]);
        ended = t->axes[a] == TG_AXIS_NONE;
    }
    REQUIRE(program->packed || !has_axis(t, TG_CUTS),
            "tensors[%" PRIu32 "].axes (%s): expected axis cuts in packed programs only", i, t->name);
    REQUIRE(program->chunk_most || !has_axis(t, TG_POSITION),
            "tensors[%" PRIu32 "].axes (%s): expected axis position in programs with one chunk size only", i, t->name);
    const bool has_parts = has_axis(t, TG_PARTS);
    REQUIRE(has_parts == (t->parts != 0) && !(has_parts && !is_workspace(t)),
            "tensors[%" PRIu32 "].parts (%s): expected more than 0 exactly for workspace tensors "
            "with axis parts, found %d",
            i, t->name, t->parts);
    REQUIRE(t->place == 0 || is_in_place(program, t),
            "tensors[%" PRIu32 "].place (%s): expected 0, or 1 + the number of a workspace tensor of the same "
            "size with place 0, found %d",
            i, t->name, t->place);
    REQUIRE(is_between(program, i),
            "tensors[%" PRIu32
            "].between (%s): expected 0 or, in programs with pieces and behind all others, 1 + the number of "
            "a final state like it, found %d",
            i, t->name, t->between);
    REQUIRE(t->segment == 0 || has_axis(t, TG_CHUNK),
            "tensors[%" PRIu32 "].segment (%s): expected 0 but for tensors with axis chunk, found %d", i, t->name,
            t->segment);
    return TG_OK;
}

/* In pieces each state is somewhere between them. */
static tg_status verify_between(const tg_program *program, uint32_t i, const tg_sink *sink)
{
    const int source = program->tensors[i].flags & TG_OUT ? tg_tensor_source(program, i) : TG_SOURCE_NONE;
    uint32_t n = 0;
    for (uint32_t b = 0; b < program->n_tensors; b++)
        n += program->tensors[b].between == i + 1;
    REQUIRE(program->pieces < 2 || source == TG_SOURCE_NONE || (source >= 0 && n == 1),
            "tensors[%" PRIu32
            "] (%s): expected, of a program with pieces, an initial state for it and one tensor between "
            "pieces, found %s and %" PRIu32,
            i, program->tensors[i].name, source < 0 ? "none" : program->tensors[source].name, n);
    return TG_OK;
}

/* Both ends of a state have one type, so that an empty call is a plain copy. */
static tg_status verify_state(const tg_program *program, uint32_t i, const tg_sink *sink)
{
    int source = tg_tensor_source(program, i);
    const tg_tensor_info *out = &program->tensors[i], *in = &program->tensors[source < 0 ? (int)i : source];
    REQUIRE(in->dtype == out->dtype, "tensors[%" PRIu32 "].dtype (%s): expected %s like %s, found %s", i, out->name,
            tg_dtype_name((tg_dtype)in->dtype), in->name, tg_dtype_name((tg_dtype)out->dtype));
    return TG_OK;
}

/* What packed and pooled kernels read beside the tensors of the algorithm. */
static tg_status verify_reader(const tg_program *program, const tg_tensor_info *expected, const char *what,
                               const tg_sink *sink)
{
    int i = tg_program_tensor(program, expected->name);
    const tg_tensor_info *found = i < 0 ? NULL : &program->tensors[i];
    if (found && found->dtype == expected->dtype && found->flags == expected->flags &&
        memcmp(found->axes, expected->axes, sizeof found->axes) == 0)
        return TG_OK;
    return tg_fail(sink, TG_E_FORMAT, "TG0723", NULL, "%s program: expected the i32 input %s of axes [%s], found %s",
                   what, expected->name,
                   expected->axes[0] == TG_CUTS    ? "cuts"
                   : expected->axes[0] == TG_T     ? "B, T"
                   : expected->axes[0] == TG_CHUNK ? "B, chunks"
                                                   : "B",
                   found ? "another tensor of that name" : "none");
}

static tg_status verify_readers(const tg_program *program, const tg_sink *sink)
{
    static const tg_tensor_info cu = {
        .name = "cu", .dtype = TG_I32, .flags = TG_IN | TG_NO_BATCH | TG_NO_HEADS, .axes = {TG_CUTS}};
    static const tg_tensor_info index = {.name = "index", .dtype = TG_I32, .flags = TG_IN | TG_NO_HEADS};
    const tg_tensor_info index_out = {.name = "index_out",
                                      .dtype = TG_I32,
                                      .flags = TG_IN | TG_NO_HEADS,
                                      .axes = {program->pooled == TG_POOL_TOKENS   ? TG_T
                                               : program->pooled == TG_POOL_CHUNKS ? TG_CHUNK
                                                                                   : TG_AXIS_NONE}};
    tg_status status = TG_OK;
    if (program->packed)
        status = verify_reader(program, &cu, "packed", sink);
    if (status == TG_OK && program->pooled >= TG_POOL_MOVES)
        status = verify_reader(program, &index_out, "pooled", sink);
    if (status == TG_OK && program->pooled)
        status = verify_reader(program, &index, "pooled", sink);
    return status;
}

static tg_status verify_scalar(const tg_program *program, uint32_t i, const tg_sink *sink)
{
    const tg_scalar_info *s = &program->scalars[i];
    REQUIRE(is_terminated(s->name, sizeof s->name) && is_identifier(s->name),
            "scalars[%" PRIu32 "].name: expected an identifier of at most %zu characters", i, sizeof s->name - 1);
    REQUIRE(i > 0 || strcmp(s->name, "scale") == 0, "scalars[0].name: expected scale, found %s", s->name);
    for (uint32_t j = 0; j < i; j++)
        REQUIRE(strcmp(program->scalars[j].name, s->name) != 0,
                "scalars[%" PRIu32 "].name: expected every name once, found %s again", i, s->name);
    REQUIRE(isfinite(s->value), "scalars[%" PRIu32 "].value (%s): expected a finite number, found %f", i, s->name,
            (double)s->value);
    return TG_OK;
}

static tg_status verify_arg(const tg_program *program, const tg_kernel *kernel, uint32_t i, const tg_sink *sink)
{
    const tg_arg_desc *arg = &kernel->args[i];
    REQUIRE(arg->kind <= TG_ARG_MAP, "kernel %s: args[%" PRIu32 "].kind: expected 0..%d, found %d", kernel->name, i,
            TG_ARG_MAP, arg->kind);
    uint32_t end = arg->kind == TG_ARG_SIZE     ? TG_SIZE_FIRST + 1
                   : arg->kind == TG_ARG_SCALAR ? program->n_scalars
                                                : program->n_tensors;
    REQUIRE(arg->index < end, "kernel %s: args[%" PRIu32 "].index: expected below %" PRIu32 ", found %d", kernel->name,
            i, end, arg->index);
    uint32_t end_axis = arg->kind == TG_ARG_STRIDE ? 2 + TG_MAX_AXES : arg->kind == TG_ARG_MAP ? kernel->n_maps : 1;
    REQUIRE(arg->axis < end_axis, "kernel %s: args[%" PRIu32 "].axis: expected below %" PRIu32 ", found %d",
            kernel->name, i, end_axis, arg->axis);
    REQUIRE(arg->kind != TG_ARG_STRIDE || arg->axis < 2 ||
                program->tensors[arg->index].axes[arg->axis - 2] != TG_AXIS_NONE,
            "kernel %s: args[%" PRIu32 "].axis: expected an axis of %s, found %d", kernel->name, i,
            program->tensors[arg->index].name, arg->axis);
    REQUIRE(arg->kind != TG_ARG_MAP || arg->index == kernel->maps[arg->axis].tensor,
            "kernel %s: args[%" PRIu32 "].index: expected %d, the tensor of its map, found %d", kernel->name, i,
            kernel->maps[arg->axis].tensor, arg->index);
    REQUIRE(arg->reserved == 0, "kernel %s: args[%" PRIu32 "].reserved: expected 0, found %d", kernel->name, i,
            arg->reserved);
    return TG_OK;
}

/* What only sm_90 and newer have. */
static tg_status verify_hopper(const tg_program *program, const tg_kernel *kernel, const tg_sink *sink)
{
    REQUIRE(kernel->cluster <= TG_MAX_CLUSTER, "kernel %s: cluster: expected 0..%d, found %d", kernel->name,
            TG_MAX_CLUSTER, kernel->cluster);
    REQUIRE(kernel->overlap <= TG_OVERLAP_BESIDE, "kernel %s: overlap: expected 0..%d, found %d", kernel->name,
            TG_OVERLAP_BESIDE, kernel->overlap);
    REQUIRE(kernel->n_maps <= TG_MAX_MAPS, "kernel %s: n_maps: expected at most %d, found %" PRIu32, kernel->name,
            TG_MAX_MAPS, kernel->n_maps);
    const bool is_hopper = strtoul(program->arch + strlen("sm_"), NULL, 10) >= 90;
    REQUIRE(is_hopper || (kernel->cluster <= 1 && !kernel->overlap && kernel->n_maps == 0),
            "kernel %s: expected sm_90 or newer for tensor maps, a cluster or overlap, found %s", kernel->name,
            program->arch);
    return TG_OK;
}

static tg_status verify_grid(const tg_kernel *kernel, const tg_sink *sink)
{
    REQUIRE(kernel->n_grid >= 1 && kernel->n_grid <= TG_MAX_TERMS, "kernel %s: n_grid: expected 1..%d, found %" PRIu32,
            kernel->name, TG_MAX_TERMS, kernel->n_grid);
    for (uint32_t i = 0; i < kernel->n_grid; i++) {
        const tg_term *term = &kernel->grid[i];
        REQUIRE(term->size <= TG_SIZE_CHUNK, "kernel %s: grid[%" PRIu32 "].size: expected 0..%d, found %" PRIu32,
                kernel->name, i, TG_SIZE_CHUNK, term->size);
        REQUIRE(term->div >= 1 && term->mul >= 1,
                "kernel %s: grid[%" PRIu32 "]: expected div and mul of at least 1, found %" PRIu32 " and %" PRIu32,
                kernel->name, i, term->div, term->mul);
    }
    return TG_OK;
}

static tg_status verify_images(const tg_kernel *kernel, const tg_sink *sink)
{
    REQUIRE(kernel->ptx && kernel->ptx_bytes > 0, "kernel %s: ptx: expected text, found none", kernel->name);
    REQUIRE(memchr(kernel->ptx, '\0', kernel->ptx_bytes) == NULL && kernel->ptx[kernel->ptx_bytes] == '\0',
            "kernel %s: ptx: expected its only NUL after %" PRIu64 " bytes", kernel->name, kernel->ptx_bytes);
    REQUIRE((kernel->cubin != NULL) == (kernel->cubin_bytes > 0),
            "kernel %s: cubin: expected a cubin and its size or neither, found %" PRIu64 " bytes at %s", kernel->name,
            kernel->cubin_bytes, kernel->cubin ? "an address" : "NULL");
    return TG_OK;
}

static tg_status verify_kernel(const tg_program *program, uint32_t i, const tg_sink *sink)
{
    const tg_kernel *kernel = &program->kernels[i];
    REQUIRE(is_terminated(kernel->name, sizeof kernel->name) && is_identifier(kernel->name),
            "kernels[%" PRIu32 "].name: expected an identifier of at most %zu characters", i, sizeof kernel->name - 1);
    tg_status status = verify_images(kernel, sink);
    if (status == TG_OK)
        status = verify_grid(kernel, sink);
    if (status != TG_OK)
        return status;
    REQUIRE(kernel->threads >= 1 && kernel->threads <= MAX_THREADS,
            "kernel %s: threads: expected 1..%d, found %" PRIu32, kernel->name, MAX_THREADS, kernel->threads);
    REQUIRE(kernel->shared_bytes <= MAX_SHARED_BYTES, "kernel %s: shared_bytes: expected at most %d, found %" PRIu32,
            kernel->name, MAX_SHARED_BYTES, kernel->shared_bytes);
    REQUIRE(kernel->n_args <= TG_MAX_ARGS, "kernel %s: n_args: expected at most %d, found %" PRIu32, kernel->name,
            TG_MAX_ARGS, kernel->n_args);
    status = verify_hopper(program, kernel, sink);
    for (uint32_t a = 0; a < kernel->n_args && status == TG_OK; a++)
        status = verify_arg(program, kernel, a, sink);
    for (uint32_t m = 0; m < kernel->n_maps && status == TG_OK; m++)
        status = verify_map(program, kernel, m, sink);
    return status;
}

static tg_status verify_identity(const tg_program *program, const tg_sink *sink)
{
    REQUIRE(is_terminated(program->variant, sizeof program->variant) && is_printable(program->variant),
            "variant: expected at most %zu printable characters", sizeof program->variant - 1);
    REQUIRE(is_terminated(program->schedule, sizeof program->schedule) && is_printable(program->schedule),
            "schedule: expected at most %zu printable characters", sizeof program->schedule - 1);
    REQUIRE(is_terminated(program->arch, sizeof program->arch) && is_arch(program->arch),
            "arch: expected a name like sm_80 or sm_90a");
    REQUIRE(program->arch_exact <= 1, "arch_exact: expected 0 or 1, found %d", program->arch_exact);
    REQUIRE(program->io_dtype >= TG_BF16 && program->io_dtype <= TG_F32,
            "io_dtype: expected bf16, f16 or f32, found value %d", program->io_dtype);
    REQUIRE(program->dqk >= 1 && program->dqk <= MAX_WIDTH, "dqk: expected 1..%d, found %" PRIu32, MAX_WIDTH,
            program->dqk);
    REQUIRE(program->dhv >= 1 && program->dhv <= MAX_WIDTH, "dhv: expected 1..%d, found %" PRIu32, MAX_WIDTH,
            program->dhv);
    REQUIRE(program->chunk_multiple >= 1 && program->chunk_multiple <= MAX_CHUNK,
            "chunk_multiple: expected 1..%d, found %" PRIu32, MAX_CHUNK, program->chunk_multiple);
    REQUIRE(program->chunk_default >= 1 && program->chunk_default <= MAX_CHUNK &&
                program->chunk_default % program->chunk_multiple == 0,
            "chunk_default: expected a multiple of %" PRIu32 " up to %d, found %" PRIu32, program->chunk_multiple,
            MAX_CHUNK, program->chunk_default);
    REQUIRE(
        program->pieces <= TG_MAX_PIECES &&
            (program->pieces < 2 || !(program->packed || program->pooled || program->max_tokens)),
        "pieces: expected at most %d, and 0 where sequences are packed, states in a pool or tokens of a decode step, found "
        "%" PRIu32,
        TG_MAX_PIECES, program->pieces);
    REQUIRE(program->chunk_most == 0 || program->chunk_most >= program->chunk_default,
            "chunk_most: expected 0 or at least chunk_default, %" PRIu32 ", found %" PRIu32, program->chunk_default,
            program->chunk_most);
    return TG_OK;
}

static tg_status verify_calls(const tg_program *program, const tg_sink *sink)
{
    REQUIRE(program->packed <= 1, "packed: expected 0 or 1, found %d", program->packed);
    REQUIRE(program->pooled <= TG_POOL_CHUNKS, "pooled: expected 0..%d, found %d", TG_POOL_CHUNKS, program->pooled);
    REQUIRE(program->group >= 1 && program->group <= MAX_GROUP, "group: expected 1..%d, found %" PRIu32, MAX_GROUP,
            program->group);
    REQUIRE(program->max_tokens <= MAX_TOKENS, "max_tokens: expected at most %d, found %" PRIu32, MAX_TOKENS,
            program->max_tokens);
    return TG_OK;
}

static tg_status verify_counts(const tg_program *program, const tg_sink *sink)
{
    REQUIRE(program->n_tensors >= 1 && program->n_tensors <= TG_MAX_TENSORS,
            "n_tensors: expected 1..%d, found %" PRIu32, TG_MAX_TENSORS, program->n_tensors);
    REQUIRE(program->n_scalars >= 1 && program->n_scalars <= TG_MAX_SCALARS,
            "n_scalars: expected 1..%d, found %" PRIu32, TG_MAX_SCALARS, program->n_scalars);
    REQUIRE(program->n_kernels >= 1 && program->n_kernels <= TG_MAX_KERNELS,
            "n_kernels: expected 1..%d, found %" PRIu32, TG_MAX_KERNELS, program->n_kernels);
    return TG_OK;
}

tg_status verify_header(const char *what, uint32_t struct_size, uint32_t version, size_t size, const tg_sink *sink)
{
    if (struct_size == size && version == TG_PROGRAM_VERSION)
        return TG_OK;
    return tg_fail(sink, TG_E_VERSION, "TG0722", "compile it again with this version of Tegula",
                   "%s: expected version %d of %zu bytes, found version %" PRIu32 " of %" PRIu32, what,
                   TG_PROGRAM_VERSION, size, version, struct_size);
}

tg_status tg_program_verify(const tg_program *program, const tg_sink *sink)
{
    if (!program)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0721", NULL, "program: expected a program, found NULL");
    tg_status status = verify_header("program", program->struct_size, program->version, sizeof *program, sink);
    if (status == TG_OK)
        status = verify_identity(program, sink);
    if (status == TG_OK)
        status = verify_calls(program, sink);
    if (status == TG_OK)
        status = verify_counts(program, sink);
    if (status != TG_OK)
        return status;
    for (uint32_t i = 0; i < program->n_tensors && status == TG_OK; i++)
        status = verify_tensor(program, i, sink);
    for (uint32_t i = 0; i < program->n_tensors && status == TG_OK; i++)
        status = verify_state(program, i, sink);
    for (uint32_t i = 0; i < program->n_tensors && status == TG_OK; i++)
        status = verify_between(program, i, sink);
    if (status == TG_OK)
        status = verify_readers(program, sink);
    for (uint32_t i = 0; i < program->n_scalars && status == TG_OK; i++)
        status = verify_scalar(program, i, sink);
    for (uint32_t i = 0; i < program->n_kernels && status == TG_OK; i++)
        status = verify_kernel(program, i, sink);
    return status;
}
