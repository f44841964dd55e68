/* tests/bundle/sample.h - a small valid program: the recurrence of recurrence.cl, with its
 * signature. */
#ifndef TEGULA_TEST_SAMPLE_H
#define TEGULA_TEST_SAMPLE_H

#include "program/set.h"

#include <string.h>

enum { SAMPLE_WIDTH = 16 };
enum { SAMPLE_Q, SAMPLE_K, SAMPLE_V, SAMPLE_F, SAMPLE_I, SAMPLE_S0, SAMPLE_H, SAMPLE_S, SAMPLE_C };

static const tg_tensor_info sample_tensors[] = {
    {.name = "q", .dtype = TG_F32, .flags = TG_IN, .axes = {TG_T, TG_DQK}},
    {.name = "k", .dtype = TG_F32, .flags = TG_IN, .axes = {TG_T, TG_DQK}},
    {.name = "v", .dtype = TG_F32, .flags = TG_IN, .axes = {TG_T, TG_DHV}},
    {.name = "f", .dtype = TG_F32, .flags = TG_IN, .axes = {TG_T}},
    {.name = "i", .dtype = TG_F32, .flags = TG_IN, .axes = {TG_T}},
    {.name = "S0", .dtype = TG_F32, .flags = TG_IN | TG_OPTIONAL, .axes = {TG_DQK, TG_DHV}},
    {.name = "h", .dtype = TG_F32, .flags = TG_OUT, .axes = {TG_T, TG_DHV}},
    {.name = "S", .dtype = TG_F32, .flags = TG_OUT | TG_OPTIONAL, .axes = {TG_DQK, TG_DHV}},
    {.name = "C", .dtype = TG_F32, .axes = {TG_DQK, TG_DHV}}, /* workspace */
};

static inline void sample_args(tg_kernel *kernel)
{
    static const tg_arg_desc rest[] = {
        {.kind = TG_ARG_POINTER, .index = SAMPLE_C},    {.kind = TG_ARG_SIZE, .index = TG_SIZE_HEADS},
        {.kind = TG_ARG_SIZE, .index = TG_SIZE_TOKENS}, {.kind = TG_ARG_SCALAR, .index = 0},
        {.kind = TG_ARG_SIZE, .index = TG_SIZE_CHUNKS}, {.kind = TG_ARG_SIZE, .index = TG_SIZE_CHUNK},
    };
    for (uint8_t tensor = SAMPLE_Q; tensor < SAMPLE_C; tensor++) {
        kernel->args[kernel->n_args++] = (tg_arg_desc){.kind = TG_ARG_POINTER, .index = tensor};
        for (uint8_t axis = 0; axis < 3; axis++)
            kernel->args[kernel->n_args++] = (tg_arg_desc){.kind = TG_ARG_STRIDE, .index = tensor, .axis = axis};
    }
    memcpy(&kernel->args[kernel->n_args], rest, sizeof rest);
    kernel->n_args += sizeof rest / sizeof *rest;
}

/* `ptx` lives as long as the program. */
static inline tg_program sample_program(const char *ptx)
{
    tg_program program = {
        .struct_size = sizeof program,
        .version = TG_PROGRAM_VERSION,
        .variant = "mlstm-sig",
        .schedule = "recurrence",
        .arch = "sm_80",
        .io_dtype = TG_F32,
        .group = 1,
        .dqk = SAMPLE_WIDTH,
        .dhv = SAMPLE_WIDTH,
        .chunk_multiple = 16,
        .chunk_default = 64,
        .n_tensors = sizeof sample_tensors / sizeof *sample_tensors,
        .n_scalars = 1,
        .scalars = {{"scale", 0.25f}},
        .n_kernels = 1,
    };
    memcpy(program.tensors, sample_tensors, sizeof sample_tensors);
    tg_kernel *kernel = &program.kernels[0];
    strcpy(kernel->name, "recurrence");
    kernel->ptx = ptx;
    kernel->ptx_bytes = strlen(ptx);
    kernel->threads = SAMPLE_WIDTH;
    kernel->n_grid = 2;
    kernel->grid[0] = (tg_term){TG_SIZE_BATCH, 1, 1};
    kernel->grid[1] = (tg_term){TG_SIZE_HEADS, 1, 1};
    sample_args(kernel);
    return program;
}

/* The same with a second kernel, a cubin and a longer grid: every field of the format is used. */
static inline tg_program sample_program_rich(const char *ptx, const void *cubin, size_t cubin_bytes)
{
    tg_program program = sample_program(ptx);
    program.n_scalars = 2;
    program.scalars[1] = (tg_scalar_info){"tau", -1.5f};
    program.n_kernels = 2;
    program.kernels[1] = program.kernels[0];
    tg_kernel *kernel = &program.kernels[1];
    strncpy(kernel->name, "second", sizeof kernel->name); /* zeroes the rest */
    kernel->cubin = cubin;
    kernel->cubin_bytes = cubin_bytes;
    kernel->shared_bytes = 100000;
    kernel->n_grid = 4;
    kernel->grid[2] = (tg_term){TG_SIZE_CHUNK, 16, 1};
    kernel->grid[3] = (tg_term){TG_SIZE_CHUNKS, 1, 2};
    kernel->registers = 128;
    kernel->n_mma = 32;
    return program;
}

/* ---- programs of the other kinds; no real kernel stands behind them ---- */

/* Address and every stride of every tensor, every size, every scalar. */
static inline void sample_all_args(tg_program *program)
{
    tg_kernel *kernel = &program->kernels[0];
    kernel->n_args = 0;
    for (uint8_t t = 0; t < program->n_tensors; t++) {
        kernel->args[kernel->n_args++] = (tg_arg_desc){.kind = TG_ARG_POINTER, .index = t};
        for (uint8_t axis = 0; axis < 2 + TG_MAX_AXES; axis++)
            if (axis < 2 || program->tensors[t].axes[axis - 2] != TG_AXIS_NONE)
                kernel->args[kernel->n_args++] = (tg_arg_desc){.kind = TG_ARG_STRIDE, .index = t, .axis = axis};
    }
    for (uint8_t size = TG_SIZE_CONST; size <= TG_SIZE_FIRST; size++)
        kernel->args[kernel->n_args++] = (tg_arg_desc){.kind = TG_ARG_SIZE, .index = size};
    for (uint8_t scalar = 0; scalar < program->n_scalars; scalar++)
        kernel->args[kernel->n_args++] = (tg_arg_desc){.kind = TG_ARG_SCALAR, .index = scalar};
}

/* Packed and pooled, with grouped heads, parameters and their gradients. */
static inline tg_program sample_program_packed(const char *ptx)
{
    enum { CU = TG_IN | TG_NO_BATCH | TG_NO_HEADS, PARAMETERS = TG_IN | TG_NO_BATCH };
    static const tg_tensor_info tensors[] = {
        {.name = "q", .dtype = TG_F32, .flags = TG_IN | TG_SHARED, .axes = {TG_T, TG_DQK}},
        {.name = "v", .dtype = TG_F32, .flags = TG_IN, .axes = {TG_T, TG_DHV}},
        {.name = "f", .dtype = TG_F32, .flags = TG_IN, .axes = {TG_T}},
        {.name = "S0", .dtype = TG_F32, .flags = TG_IN | TG_OPTIONAL, .axes = {TG_DQK, TG_DHV}},
        {.name = "A", .dtype = TG_F32, .flags = PARAMETERS, .axes = {TG_DQK}},
        {.name = "bias", .dtype = TG_F32, .flags = PARAMETERS | TG_NO_HEADS, .axes = {TG_DHV}},
        {.name = "cu", .dtype = TG_I32, .flags = CU, .axes = {TG_CUTS}},
        {.name = "index", .dtype = TG_I32, .flags = TG_IN | TG_NO_HEADS},
        {.name = "h", .dtype = TG_F32, .flags = TG_OUT, .axes = {TG_T, TG_DHV}},
        {.name = "kept", .dtype = TG_F32, .flags = TG_OUT | TG_OPTIONAL, .axes = {TG_CHUNK}},
        {.name = "S", .dtype = TG_F32, .flags = TG_OUT | TG_OPTIONAL, .axes = {TG_DQK, TG_DHV}},
        {.name = "dA", .dtype = TG_F32, .flags = TG_OUT | TG_OPTIONAL | TG_NO_BATCH, .axes = {TG_DQK}},
        {.name = "C", .dtype = TG_F32, .flags = TG_SHARED, .axes = {TG_CHUNK, TG_DQK, TG_DHV}},
        {.name = "first", .dtype = TG_I32, .flags = TG_NO_BATCH | TG_NO_HEADS, .axes = {TG_CUTS}},
        {.name = "sum", .dtype = TG_F32, .flags = TG_NO_BATCH, .axes = {TG_DQK, TG_PARTS}, .parts = 3},
        {.name = "later", /* in the place of sum */
         .dtype = TG_F32,
         .flags = TG_NO_BATCH,
         .axes = {TG_DQK, TG_PARTS},
         .parts = 3,
         .place = 15},
    };
    tg_program program = sample_program(ptx);
    program.packed = program.pooled = 1;
    program.group = 2;
    program.n_scalars = 2;
    program.scalars[1] = (tg_scalar_info){"tau", -1.5f};
    program.n_tensors = sizeof tensors / sizeof *tensors;
    memcpy(program.tensors, tensors, sizeof tensors);
    sample_all_args(&program);
    return program;
}

/* What a launch reads at the address of a parameter. */
static inline uint8_t sample_value_bytes(const tg_arg_desc *arg)
{
    return arg->kind == TG_ARG_MAP ? 128 : arg->kind == TG_ARG_POINTER || arg->kind == TG_ARG_STRIDE ? 8 : 4;
}

/* Tensor maps of every type, in clusters, each before the kernel ahead of it has ended. */
static inline tg_program sample_program_maps(const char *ptx)
{
    static const tg_tensor_info tensors[] = {
        {.name = "q", .dtype = TG_BF16, .flags = TG_IN | TG_SHARED, .axes = {TG_T, TG_DQK}},
        {.name = "k", .dtype = TG_BF16, .flags = TG_IN | TG_SHARED, .axes = {TG_T, TG_DQK}},
        {.name = "v", .dtype = TG_F16, .flags = TG_IN, .axes = {TG_T, TG_DHV}},
        {.name = "w", .dtype = TG_F32, .flags = TG_IN | TG_NO_BATCH, .axes = {TG_T, TG_DHV}},
        {.name = "g", .dtype = TG_BF16, .flags = TG_IN | TG_OPTIONAL | TG_NO_HEADS, .axes = {TG_T, TG_DQK}},
        {.name = "f", .dtype = TG_F32, .flags = TG_IN, .axes = {TG_T}},
        {.name = "plain", .dtype = TG_F32, .flags = TG_IN, .axes = {TG_T, TG_DHV}},
        {.name = "h", .dtype = TG_F32, .flags = TG_OUT, .axes = {TG_T, TG_DHV}},
        {.name = "u", .dtype = TG_BF16, .axes = {TG_T, TG_DHV}}, /* workspace */
    };
    static const tg_map_desc maps[] = {
        {.tensor = 0, .swizzle = TG_SWIZZLE_64, .columns = 24, .rows = 64, .spans = 2},
        {.tensor = 1, .swizzle = TG_SWIZZLE_32, .columns = 16, .rows = 128, .spans = 3},
        {.tensor = 2, .swizzle = TG_SWIZZLE_128, .columns = 64, .rows = 256, .spans = 1},
        {.tensor = 3, .swizzle = TG_SWIZZLE_128, .columns = 32, .rows = 8, .spans = 2},
        {.tensor = 4, .swizzle = TG_SWIZZLE_NONE, .columns = 8, .rows = 1, .spans = 6},
        {.tensor = 0, .swizzle = TG_SWIZZLE_64, .columns = 32, .rows = 16, .spans = 1}, /* which do not divide 48 */
        {.tensor = 1, .swizzle = TG_SWIZZLE_NONE, .columns = 8, .rows = 16, .spans = 1},
        {.tensor = 7, .swizzle = TG_SWIZZLE_64, .columns = 16, .rows = 64, .spans = 8},
        {.tensor = 8, .swizzle = TG_SWIZZLE_128, .columns = 64, .rows = 64, .spans = 1},
    };
    tg_program program = sample_program(ptx);
    tg_kernel *kernel = &program.kernels[0];
    memcpy(program.arch, "sm_90a", sizeof "sm_90a");
    program.arch_exact = 1;
    program.group = 2;
    program.dqk = 48;
    program.dhv = 64;
    program.n_tensors = sizeof tensors / sizeof *tensors;
    memset(program.tensors, 0, sizeof program.tensors);
    memcpy(program.tensors, tensors, sizeof tensors);
    sample_all_args(&program);
    kernel->n_maps = TG_MAX_MAPS;
    memcpy(kernel->maps, maps, sizeof maps);
    memmove(kernel->args + TG_MAX_MAPS, kernel->args, kernel->n_args * sizeof *kernel->args);
    kernel->n_args += TG_MAX_MAPS;
    for (uint8_t m = 0; m < TG_MAX_MAPS; m++) /* the last comes first */
        kernel->args[TG_MAX_MAPS - 1 - m] = (tg_arg_desc){.kind = TG_ARG_MAP, .index = maps[m].tensor, .axis = m};
    kernel->shared_bytes = 100000;
    kernel->cluster = 4;
    kernel->overlap = 1;
    return program;
}

/* A call in three pieces, of two kernels: the first is launched beside the second of the piece before. */
static inline tg_program sample_program_pieces(const char *ptx)
{
    tg_program program = sample_program(ptx);
    memcpy(program.arch, "sm_90", sizeof "sm_90");
    program.pieces = 3;
    program.tensors[SAMPLE_C].between = SAMPLE_S + 1;
    sample_all_args(&program);
    program.kernels[0].n_grid = 4;
    program.kernels[0].grid[2] = (tg_term){TG_SIZE_CHUNKS, 1, 2};
    program.kernels[0].grid[3] = (tg_term){TG_SIZE_CHUNK, 16, 1};
    program.n_kernels = 2;
    program.kernels[1] = program.kernels[0];
    program.kernels[0].overlap = TG_OVERLAP_BESIDE;
    program.kernels[1].overlap = TG_OVERLAP_WAITS;
    memcpy(program.kernels[1].name, "walk", sizeof "walk");
    return program;
}

/* Three programs that differ in what a call must be like, for two architectures and two pairs of widths. `programs` and
 * `branches` live as long as the set. */
enum { SAMPLE_SET_PROGRAMS = 7, SAMPLE_SET_BRANCHES = 3 };

static inline void sample_branch(tg_set *set, uint32_t i, uint32_t first, uint32_t n)
{
    tg_branch *b = &set->branches[i];
    *b = (tg_branch){.first = first, .n_programs = n, .n_points = n > 1 ? 3 : 0};
    for (uint8_t k = 0; k < b->n_points; k++)
        b->points[k] = (tg_point_of_set){
            .batch = 1 + k, .heads = 2, .tokens = 16 << 2 * k, .program = (uint8_t)(k % n), .origin = k};
    for (uint32_t h = 0; h < TG_PICK_HEADS; h++)
        for (uint32_t t = 0; t < TG_PICK_TOKENS; t++)
            b->picks[h][t] = (uint8_t)((h * 7 + t) % n);
}

static inline tg_set sample_set(const char *ptx, tg_program programs[SAMPLE_SET_PROGRAMS],
                                tg_branch branches[SAMPLE_SET_BRANCHES])
{
    static const char *const schedules[] = {"walk", "tfla", "clusters"};
    tg_set set = {.struct_size = sizeof set,
                  .version = TG_PROGRAM_VERSION,
                  .n_programs = SAMPLE_SET_PROGRAMS,
                  .programs = programs,
                  .n_branches = SAMPLE_SET_BRANCHES,
                  .branches = branches};
    for (uint32_t i = 0; i < SAMPLE_SET_PROGRAMS; i++) {
        tg_program *p = &programs[i];
        *p = sample_program(ptx);
        strncpy(p->schedule, schedules[i % 3], sizeof p->schedule); /* zeroes the rest */
        p->chunk_multiple = i % 3 ? 16 : 32;
        p->chunk_default = p->chunk_multiple * 2;
        p->kernels[0].threads += i;
        p->kernels[0].name[0] = (char)('a' + i);
        if (i >= 3)
            memcpy(p->arch, "sm_90", sizeof "sm_90");
        p->kernels[0].cluster = i == 5 ? 2 : 0;
        p->max_tokens = i % 3 == 1 ? 100 : 0;
    }
    programs[6].dqk = 2 * SAMPLE_WIDTH;
    sample_branch(&set, 0, 0, 3);
    sample_branch(&set, 1, 3, 3);
    sample_branch(&set, 2, 6, 1);
    return set;
}

/* A decode step on states in a pool, with grouped heads, that begins before the work ahead has
 * ended. */
static inline tg_program sample_program_decode(const char *ptx)
{
    tg_program program = sample_program(ptx);
    program.pooled = 1;
    program.group = 3;
    program.max_tokens = 20;
    memcpy(program.arch, "sm_90", sizeof "sm_90");
    program.kernels[0].overlap = 1;
    program.chunk_multiple = 4;
    program.tensors[SAMPLE_Q].flags |= TG_SHARED;
    program.tensors[SAMPLE_K].flags |= TG_SHARED;
    program.tensors[SAMPLE_I] = (tg_tensor_info){.name = "index", .dtype = TG_I32, .flags = TG_IN | TG_NO_HEADS};
    sample_all_args(&program);
    return program;
}

#endif
