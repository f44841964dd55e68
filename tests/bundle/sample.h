/* tests/bundle/sample.h - a small valid program: the recurrence of recurrence.cl, with its
 * signature. */
#ifndef TEGULA_TEST_SAMPLE_H
#define TEGULA_TEST_SAMPLE_H

#include "program/program.h"

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
        {.kind = TG_ARG_POINTER, .index = SAMPLE_C},
        {.kind = TG_ARG_SIZE, .index = TG_SIZE_HEADS},
        {.kind = TG_ARG_SIZE, .index = TG_SIZE_TOKENS},
        {.kind = TG_ARG_SCALE},
        {.kind = TG_ARG_SIZE, .index = TG_SIZE_CHUNKS},
        {.kind = TG_ARG_SIZE, .index = TG_SIZE_CHUNK},
    };
    for (uint8_t tensor = SAMPLE_Q; tensor < SAMPLE_C; tensor++) {
        kernel->args[kernel->n_args++] = (tg_arg_desc){.kind = TG_ARG_POINTER, .index = tensor};
        for (uint8_t axis = 0; axis < 3; axis++)
            kernel->args[kernel->n_args++] =
                (tg_arg_desc){.kind = TG_ARG_STRIDE, .index = tensor, .axis = axis};
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
        .dqk = SAMPLE_WIDTH,
        .dhv = SAMPLE_WIDTH,
        .chunk_multiple = 16,
        .chunk_default = 64,
        .n_tensors = sizeof sample_tensors / sizeof *sample_tensors,
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

#endif
