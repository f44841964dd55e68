/* program/generate_tensors.c - generated C: the tensors of a call, as a struct, as a table and as comments. */
#include "program/generate.h"
#include "program/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *suffix(const tg_tensor_info *t)
{
    return gen_is_taken(t->name) ? "_" : "";
}

/* "[B, NH/4, T, dqk]": as long as the strides that the caller gives, so an axis that is not there
 * is 1. */
static void describe_axes(struct text *text, const tg_program *program, uint32_t tensor)
{
    static const char *const axes[TG_N_AXES] = {
        [TG_AXIS_NONE] = "", [TG_T] = ", T",         [TG_CHUNK] = ", ceil(T/L)", [TG_DQK] = ", dqk",
        [TG_DHV] = ", dhv",  [TG_PARTS] = ", parts", [TG_CUTS] = ", B+1",        [TG_POSITION] = ", L",
    };
    const tg_tensor_info *t = &program->tensors[tensor];
    gen_append(text, "[%s", lacks_axis(program, tensor, 0) ? "1" : tg_tensor_is_slot(program, tensor) ? "slots" : "B");
    gen_append(text, lacks_axis(program, tensor, 1) ? ", 1" : ", NH");
    if ((t->flags & TG_SHARED) && program->group > 1)
        gen_append(text, "/%" PRIu32, program->group);
    for (int a = 0; a < TG_MAX_AXES; a++)
        if (t->axes[a] == TG_CHUNK && t->segment)
            gen_append(text, ", ceil(%s/%d)", program->packed ? "(T/L+B)" : "T/L", t->segment);
        else
            gen_append(text, "%s", t->axes[a] == TG_CHUNK && program->packed ? ", T/L+B" : axes[t->axes[a]]);
    gen_append(text, "]");
}

static void describe_tensor(struct text *text, const tg_program *program, uint32_t tensor)
{
    const tg_tensor_info *t = &program->tensors[tensor];
    gen_append(text, "%s%s  %s ", t->name, suffix(t), tg_dtype_name((tg_dtype)t->dtype));
    describe_axes(text, program, tensor);
    gen_append(text, "%s", t->flags & TG_OPTIONAL ? ", may be absent" : "");
}

/* For people: what goes in, then what comes out. */
static void append_list(struct text *text, const tg_program *program, uint8_t direction)
{
    for (uint32_t i = 0; i < program->n_tensors && !is_workspace(&program->tensors[i]); i++) {
        const uint8_t flags = program->tensors[i].flags;
        if (!(flags & direction) || (direction == TG_OUT && flags & TG_IN))
            continue;
        gen_append(text, " *     %-4s ", !(flags & TG_IN) ? "out" : flags & TG_OUT ? "both" : "in");
        describe_tensor(text, program, i);
        gen_append(text, "\n");
    }
}

void gen_add_signature(struct keys *keys, const tg_program *program)
{
    struct text *signature = gen_add_key(keys, "signature"), *fields = gen_add_key(keys, "tensor_fields");
    struct text *types = gen_add_key(keys, "tensor_types");
    append_list(signature, program, TG_IN);
    append_list(signature, program, TG_OUT);
    for (uint32_t i = 0; i < program->n_tensors && !is_workspace(&program->tensors[i]); i++) {
        const tg_tensor_info *t = &program->tensors[i];
        gen_append(types, "    @NAME@_TYPE_%s = %d, /* %s */\n", t->name, t->dtype, tg_dtype_name((tg_dtype)t->dtype));
        gen_append(fields, "    tegula_tensor %s%s; /* ", t->name, suffix(t));
        describe_tensor(fields, program, i);
        gen_append(fields, " */\n");
    }
}

/* The extents of the axes B and NH as terms: { size, div, mul }. */
static void append_outer(struct text *text, const tg_program *program, uint32_t tensor)
{
    const bool is_shared = program->tensors[tensor].flags & TG_SHARED;
    gen_append(text, "{%s, 1, 1}", lacks_axis(program, tensor, 0) ? "ONE" : "BATCH");
    gen_append(text, ", {%s, %" PRIu32 ", 1}", lacks_axis(program, tensor, 1) ? "ONE" : "HEADS",
               is_shared ? program->group : 1);
}

static void append_extent(struct text *text, const tg_program *program, const tg_tensor_info *t, uint8_t axis)
{
    static const char *const sizes[TG_N_AXES] = {
        [TG_AXIS_NONE] = "ONE", [TG_T] = "TOKENS",  [TG_CHUNK] = "CHUNKS", [TG_DQK] = "ONE",
        [TG_DHV] = "ONE",       [TG_PARTS] = "ONE", [TG_CUTS] = "CUTS",    [TG_POSITION] = "ONE",
    };
    const uint32_t width = axis == TG_DQK        ? program->dqk
                           : axis == TG_DHV      ? program->dhv
                           : axis == TG_PARTS    ? t->parts
                           : axis == TG_POSITION ? program->chunk_default
                                                 : 1;
    const uint32_t entries = axis == TG_CHUNK && t->segment ? t->segment : 1;
    gen_append(text, ", {%s, %" PRIu32 ", %" PRIu32 "}", sizes[axis], entries, width);
}

/* The driver's number of the type of a tensor with a map; the verifier saw that it has one. */
static int map_type(const tg_program *program, uint32_t tensor)
{
    static const int8_t types[] = {[TG_BF16] = 9, [TG_F16] = 6, [TG_F32] = 7};
    return mapped_tensors(program) >> tensor & 1 ? types[program->tensors[tensor].dtype] : -1;
}

static void append_axes(struct text *text, const tg_tensor_info *t)
{
    static const char *const names[TG_N_AXES] = {
        [TG_AXIS_NONE] = "", [TG_T] = "T",         [TG_CHUNK] = "chunk", [TG_DQK] = "dqk",
        [TG_DHV] = "dhv",    [TG_PARTS] = "parts", [TG_CUTS] = "cuts",   [TG_POSITION] = "position",
    };
    gen_append(text, "{\"B\", \"NH\"");
    for (int a = 0; a < TG_MAX_AXES; a++)
        gen_append(text, ", \"%s\"", names[t->axes[a]]);
    gen_append(text, "}, ");
}

static void append_tensor(struct text *text, const tg_program *program, uint32_t i)
{
    const tg_tensor_info *t = &program->tensors[i];
    const int n_axes = (int)count_axes(t);
    gen_append(text, "    {\"%s\", ", t->name);
    if (!is_workspace(t))
        gen_append(text, "offsetof(@name@_tensors, %s%s), ", t->name, suffix(t));
    else
        gen_append(text, "0, ");
    gen_append(text, "%d, %" PRIu32 ", %d, %d, %d, %d, %d, %d, %d, %" PRIu32 ", %d,\n     ", t->flags,
               tg_dtype_bytes((tg_dtype)t->dtype), tg_tensor_source(program, i), has_rows(t), t->dtype == TG_I32,
               tg_tensor_is_slot(program, i), lacks_axis(program, i, 0) | lacks_axis(program, i, 1) << 1,
               map_type(program, i), t->between, t->place ? t->place - 1u : i, n_axes);
    append_axes(text, t);
    gen_append(text, "{");
    append_outer(text, program, i);
    for (int a = 0; a < TG_MAX_AXES; a++)
        append_extent(text, program, t, t->axes[a]);
    gen_append(text, "}},\n");
}

void gen_add_tensors(struct keys *keys, const tg_set *set)
{
    struct text *text = gen_add_key(keys, "tensors");
    uint32_t most = 0;
    for (uint32_t p = 0; p < set->n_programs; p++) {
        const tg_program *program = &set->programs[p];
        most = program->n_tensors > most ? program->n_tensors : most;
        gen_append(text, "static const struct tensor tensors_%" PRIu32 "[] = {\n", p);
        for (uint32_t i = 0; i < program->n_tensors; i++)
            append_tensor(text, program, i);
        gen_append(text, "};\n");
    }
    gen_append(gen_add_key(keys, "max_tensors"), "%" PRIu32, most);
}
