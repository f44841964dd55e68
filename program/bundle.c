/* program/bundle.c - a program, or a set of them, as bytes and back.
 *
 *     magic[8]  version u32  kind u32  size u64 (of the whole file)
 *     kind 0: the fields of tg_program, in the order of code_program below
 *     kind 1: those of tg_set, in the order of code_set
 *     checksum u64 (xxhash64 of everything before it)
 *
 * Integers are little endian, text is a length and its bytes, images start at multiples of 16 so
 * that they can be used in place. One description of the fields serves measuring, writing and
 * reading; whether the values make sense is tg_program_verify's and tg_set_verify's business alone. */
#include "program/codec.h"
#include "program/fail.h"
#include "program/set.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const uint8_t magic[8] = {'T', 'E', 'G', 'U', 'L', 'A', '\r', '\n'};

enum { HEADER_BYTES = 24, CHECKSUM_BYTES = 8 };

enum kind { PROGRAM = 0, SET = 1 };

static bool code_ptx(struct codec *c, tg_kernel *k)
{
    const void *text = k->ptx;
    uint8_t nul = 0;
    if (!code_image(c, &text, &k->ptx_bytes, "kernel ptx") || !code_u8(c, &nul, "end of kernel ptx"))
        return false;
    k->ptx = text;
    return nul == 0 || code_refuse(c, "end of kernel ptx", 0, nul);
}

static bool code_term(struct codec *c, tg_term *term)
{
    return code_u32(c, &term->size, "grid size") && code_u32(c, &term->div, "grid div") &&
           code_u32(c, &term->mul, "grid mul");
}

static bool code_arg(struct codec *c, tg_arg_desc *arg)
{
    return code_u8(c, &arg->kind, "argument kind") && code_u8(c, &arg->index, "argument index") &&
           code_u8(c, &arg->axis, "argument axis") && code_u8(c, &arg->reserved, "argument reserved");
}

static bool code_map(struct codec *c, tg_map_desc *map)
{
    return code_u8(c, &map->tensor, "map tensor") && code_u8(c, &map->swizzle, "map swizzle") &&
           code_u16(c, &map->columns, "map columns") && code_u16(c, &map->rows, "map rows") &&
           code_u16(c, &map->spans, "map spans");
}

static bool code_kernel(struct codec *c, tg_kernel *k)
{
    bool ok = code_text(c, k->name, sizeof k->name, "kernel name") && code_ptx(c, k) &&
              code_image(c, &k->cubin, &k->cubin_bytes, "kernel cubin") && code_u32(c, &k->threads, "kernel threads") &&
              code_u32(c, &k->shared_bytes, "kernel shared_bytes") && code_u8(c, &k->cluster, "kernel cluster") &&
              code_u8(c, &k->overlap, "kernel overlap") && code_u32(c, &k->registers, "kernel registers") &&
              code_u32(c, &k->spill_bytes, "kernel spill_bytes") && code_u32(c, &k->n_mma, "kernel n_mma") &&
              code_count(c, &k->n_grid, TG_MAX_TERMS, "kernel n_grid");
    for (uint32_t i = 0; ok && i < k->n_grid; i++)
        ok = code_term(c, &k->grid[i]);
    ok = ok && code_count(c, &k->n_args, TG_MAX_ARGS, "kernel n_args");
    for (uint32_t i = 0; ok && i < k->n_args; i++)
        ok = code_arg(c, &k->args[i]);
    ok = ok && code_count(c, &k->n_maps, TG_MAX_MAPS, "kernel n_maps");
    for (uint32_t i = 0; ok && i < k->n_maps; i++)
        ok = code_map(c, &k->maps[i]);
    return ok;
}

static bool code_tensor(struct codec *c, tg_tensor_info *t)
{
    return code_text(c, t->name, sizeof t->name, "tensor name") && code_u8(c, &t->dtype, "tensor dtype") &&
           code_u8(c, &t->flags, "tensor flags") && code_bytes(c, t->axes, sizeof t->axes, "tensor axes") &&
           code_u8(c, &t->parts, "tensor parts") && code_u16(c, &t->segment, "tensor segment") &&
           code_u8(c, &t->between, "tensor between") && code_u8(c, &t->place, "tensor place");
}

static bool code_scalars(struct codec *c, tg_program *p)
{
    bool ok = code_count(c, &p->n_scalars, TG_MAX_SCALARS, "n_scalars");
    for (uint32_t i = 0; ok && i < p->n_scalars; i++)
        ok = code_text(c, p->scalars[i].name, sizeof p->scalars[i].name, "scalar name") &&
             code_f32(c, &p->scalars[i].value, "scalar value");
    return ok;
}

static bool code_program(struct codec *c, tg_program *p)
{
    bool ok = code_text(c, p->variant, sizeof p->variant, "variant") &&
              code_text(c, p->schedule, sizeof p->schedule, "schedule") &&
              code_text(c, p->arch, sizeof p->arch, "arch") && code_u8(c, &p->arch_exact, "arch_exact") &&
              code_u8(c, &p->io_dtype, "io_dtype") && code_u8(c, &p->packed, "packed") &&
              code_u8(c, &p->pooled, "pooled") && code_u32(c, &p->group, "group") &&
              code_u32(c, &p->max_tokens, "max_tokens") && code_u32(c, &p->dqk, "dqk") && code_u32(c, &p->dhv, "dhv") &&
              code_u32(c, &p->chunk_multiple, "chunk_multiple") && code_u32(c, &p->chunk_default, "chunk_default") &&
              code_u32(c, &p->chunk_most, "chunk_most") && code_u32(c, &p->pieces, "pieces") &&
              code_count(c, &p->n_tensors, TG_MAX_TENSORS, "n_tensors");
    for (uint32_t i = 0; ok && i < p->n_tensors; i++)
        ok = code_tensor(c, &p->tensors[i]);
    ok = ok && code_scalars(c, p) && code_count(c, &p->n_kernels, TG_MAX_KERNELS, "n_kernels");
    for (uint32_t i = 0; ok && i < p->n_kernels; i++)
        ok = code_kernel(c, &p->kernels[i]);
    return ok;
}

static bool code_branch(struct codec *c, tg_branch *b)
{
    bool ok = code_u32(c, &b->first, "branch first") && code_u32(c, &b->n_programs, "branch n_programs") &&
              code_count(c, &b->n_points, TG_MAX_POINTS, "branch n_points");
    for (uint32_t i = 0; ok && i < b->n_points; i++)
        ok = code_i64(c, &b->points[i].batch, "point batch") && code_i64(c, &b->points[i].heads, "point heads") &&
             code_i64(c, &b->points[i].tokens, "point tokens") && code_u8(c, &b->points[i].program, "point program") &&
             code_u8(c, &b->points[i].origin, "point origin");
    return ok && code_bytes(c, b->picks, sizeof b->picks, "branch picks");
}

/* What is read has room for as many programs and branches as there may be. */
static bool code_set(struct codec *c, tg_set *set)
{
    uint32_t n_programs = set->n_programs, n_branches = set->n_branches;
    bool ok = code_count(c, &n_programs, TG_MAX_SET_PROGRAMS, "n_programs") &&
              code_count(c, &n_branches, TG_MAX_BRANCHES, "n_branches");
    if (!ok)
        return false;
    set->n_programs = n_programs;
    set->n_branches = n_branches;
    for (uint32_t i = 0; ok && i < set->n_programs; i++) {
        tg_program copy = set->programs[i]; /* the codec takes fields it may write */
        ok = code_program(c, &copy);
        if (c->mode == READ)
            set->programs[i] = copy;
    }
    for (uint32_t i = 0; ok && i < set->n_branches; i++) {
        tg_branch copy = set->branches[i];
        ok = code_branch(c, &copy);
        if (c->mode == READ)
            set->branches[i] = copy;
    }
    return ok;
}

static void put_header(uint8_t *bytes, enum kind kind, size_t size)
{
    memcpy(bytes, magic, sizeof magic);
    put_little(bytes + 8, 4, TG_PROGRAM_VERSION);
    put_little(bytes + 12, 4, kind);
    put_little(bytes + 16, 8, size);
}

/* Either kind, which has been verified. */
static bool code_either(struct codec *c, enum kind kind, void *object)
{
    return kind == SET ? code_set(c, object) : code_program(c, object);
}

static tg_status write_either(enum kind kind, void *object, void **bytes, size_t *size, const tg_sink *sink)
{
    struct codec measure = {.mode = MEASURE, .size = SIZE_MAX / 2, .at = HEADER_BYTES, .sink = sink};
    if (!code_either(&measure, kind, object))
        return TG_E_FORMAT;
    size_t end = measure.at;
    uint8_t *buffer = malloc(end + CHECKSUM_BYTES);
    if (!buffer)
        return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "bundle: no memory for %zu bytes", end);
    put_header(buffer, kind, end + CHECKSUM_BYTES);
    struct codec writer = {.mode = WRITE, .bytes = buffer, .size = end, .at = HEADER_BYTES, .sink = sink};
    (void)code_either(&writer, kind, object); /* the measured size is exact */
    put_little(buffer + end, CHECKSUM_BYTES, XXH64(buffer, end, 0));
    *bytes = buffer;
    *size = end + CHECKSUM_BYTES;
    return TG_OK;
}

tg_status tg_program_bytes(const tg_program *program, void **bytes, size_t *size, const tg_sink *sink)
{
    if (!bytes || !size)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0713", NULL, "tg_program_bytes: %s is NULL", bytes ? "size" : "bytes");
    *bytes = NULL;
    *size = 0;
    tg_status status = tg_program_verify(program, sink);
    if (status != TG_OK)
        return status;
    tg_program copy = *program; /* the codec takes fields it may write */
    return write_either(PROGRAM, &copy, bytes, size, sink);
}

tg_status tg_set_bytes(const tg_set *set, void **bytes, size_t *size, const tg_sink *sink)
{
    if (!bytes || !size)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0713", NULL, "tg_set_bytes: %s is NULL", bytes ? "size" : "bytes");
    *bytes = NULL;
    *size = 0;
    tg_status status = tg_set_verify(set, sink);
    if (status != TG_OK)
        return status;
    if (set->n_programs == 1)
        return tg_program_bytes(&set->programs[0], bytes, size, sink);
    tg_set copy = *set;
    return write_either(SET, &copy, bytes, size, sink);
}

static tg_status check_header(const uint8_t *bytes, size_t size, enum kind *kind, const tg_sink *sink)
{
    const char *again = "write the bundle again with this version of Tegula";
    if (size < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
        return tg_fail(sink, TG_E_FORMAT, "TG0711", NULL,
                       "bundle: magic: expected \"TEGULA\\r\\n\", found %zu other bytes",
                       size < sizeof magic ? size : sizeof magic);
    if (size < HEADER_BYTES + CHECKSUM_BYTES)
        return tg_fail(sink, TG_E_FORMAT, "TG0713", NULL, "bundle: expected at least %d bytes, found %zu",
                       HEADER_BYTES + CHECKSUM_BYTES, size);
    uint64_t version = get_little(bytes + 8, 4), found_kind = get_little(bytes + 12, 4);
    if (version != TG_PROGRAM_VERSION)
        return tg_fail(sink, TG_E_FORMAT, "TG0712", again, "bundle: version: expected %d, found %" PRIu64,
                       TG_PROGRAM_VERSION, version);
    if (found_kind > SET)
        return tg_fail(sink, TG_E_FORMAT, "TG0715", again,
                       "bundle: kind: expected 0 (one program) or 1 (a set), found %" PRIu64, found_kind);
    uint64_t stated = get_little(bytes + 16, 8);
    if (stated != size)
        return tg_fail(sink, TG_E_FORMAT, "TG0713", NULL,
                       "bundle: size: expected the %" PRIu64 " bytes it states, found %zu", stated, size);
    uint64_t expected = get_little(bytes + size - CHECKSUM_BYTES, CHECKSUM_BYTES);
    uint64_t found = XXH64(bytes, size - CHECKSUM_BYTES, 0);
    if (expected != found)
        return tg_fail(sink, TG_E_FORMAT, "TG0714", again,
                       "bundle: checksum: expected %016" PRIx64 ", found %016" PRIx64, expected, found);
    *kind = (enum kind)found_kind;
    return TG_OK;
}

/* Reads the fields, which go up to the end. `storage` holds the bytes and stays with the object. */
static tg_status read_either(enum kind kind, void *object, void *storage, size_t size, const tg_sink *sink)
{
    struct codec reader = {
        .mode = READ, .bytes = storage, .size = size - CHECKSUM_BYTES, .at = HEADER_BYTES, .sink = sink};
    if (!code_either(&reader, kind, object))
        return TG_E_FORMAT;
    if (reader.at != reader.size)
        return tg_fail(sink, TG_E_FORMAT, "TG0713", NULL,
                       "bundle: expected its last field to end at byte %zu, found %zu", reader.size, reader.at);
    return TG_OK;
}

static void *copy_of(const void *bytes, size_t size)
{
    void *storage = malloc(size);
    if (storage)
        memcpy(storage, bytes, size);
    return storage;
}

static tg_status no_memory(size_t size, const tg_sink *sink)
{
    return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "bundle: no memory for %zu bytes", size);
}

static tg_status parse_program(const void *bytes, size_t size, tg_program **program, const tg_sink *sink)
{
    tg_program *parsed = calloc(1, sizeof *parsed);
    void *storage = copy_of(bytes, size);
    if (!parsed || !storage) {
        free(parsed);
        free(storage);
        return no_memory(size, sink);
    }
    parsed->struct_size = sizeof *parsed;
    parsed->version = TG_PROGRAM_VERSION;
    parsed->storage = storage;
    tg_status status = read_either(PROGRAM, parsed, storage, size, sink);
    if (status == TG_OK)
        status = tg_program_verify(parsed, sink);
    if (status == TG_OK)
        *program = parsed;
    else
        tg_program_free(parsed);
    return status;
}

tg_status tg_program_parse(const void *bytes, size_t size, tg_program **program, const tg_sink *sink)
{
    enum kind kind;
    if (!bytes || !program)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0713", NULL, "tg_program_parse: %s is NULL",
                       bytes ? "program" : "bytes");
    *program = NULL;
    tg_status status = check_header(bytes, size, &kind, sink);
    if (status == TG_OK && kind != PROGRAM)
        return tg_fail(sink, TG_E_FORMAT, "TG0716", "tg_set_parse reads both",
                       "bundle: kind: expected 0 (one program), found %d (a set)", kind);
    return status == TG_OK ? parse_program(bytes, size, program, sink) : status;
}

static tg_status parse_set(const void *bytes, size_t size, tg_set **set, const tg_sink *sink)
{
    tg_set *parsed = tg_set_new(TG_MAX_SET_PROGRAMS, TG_MAX_BRANCHES);
    if (parsed)
        parsed->storage = copy_of(bytes, size);
    if (!parsed || !parsed->storage) {
        tg_set_free(parsed);
        return no_memory(size, sink);
    }
    tg_status status = read_either(SET, parsed, parsed->storage, size, sink);
    if (status == TG_OK)
        status = tg_set_verify(parsed, sink);
    if (status == TG_OK)
        *set = parsed;
    else
        tg_set_free(parsed);
    return status;
}

tg_status tg_set_parse(const void *bytes, size_t size, tg_set **set, const tg_sink *sink)
{
    enum kind kind;
    tg_program *program;
    if (!bytes || !set)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0713", NULL, "tg_set_parse: %s is NULL", bytes ? "set" : "bytes");
    *set = NULL;
    tg_status status = check_header(bytes, size, &kind, sink);
    if (status == TG_OK && kind == SET)
        return parse_set(bytes, size, set, sink);
    if (status == TG_OK)
        status = parse_program(bytes, size, &program, sink);
    return status == TG_OK ? tg_set_of(program, set, sink) : status;
}

void tg_program_free(tg_program *program)
{
    if (!program)
        return;
    free(program->storage);
    free(program);
}
