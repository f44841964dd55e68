/* tests/test_program.c - sizes and the verifier. */
#include "program/piece.h"
#include "program/program.h"
#include "tests/bundle/sample.h"
#include "tests/log.h"
#include "tests/usage.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char ptx[] = ".version 7.0\n.target sm_80\n";
static const uint8_t cubin[] = {0x7f, 'E', 'L', 'F', 0, 1, 2, 3};

/* ---- report ---- */

static void long_messages_arrive_whole(void **state)
{
    (void)state;
    static char text[10000];
    memset(text, 'x', sizeof text - 1);
    LOG(log);
    tg_report(&log_sink, TG_ERROR, "TG0000", NULL, 0, NULL, "%s.", text);
    assert_int_equal(strlen(log.text), sizeof text - 1 + strlen("TG0000 .\n"));
    tg_report(NULL, TG_ERROR, "TG0000", NULL, 0, NULL, "%d", 1);
    tg_report(&(tg_sink){0}, TG_ERROR, "TG0000", NULL, 0, NULL, "%d", 1);
}

static void every_status_has_a_name(void **state)
{
    (void)state;
    for (tg_status s = TG_OK; s <= TG_E_NUMERICS; s++)
        assert_string_not_equal(tg_status_name(s), "unknown status");
    assert_string_equal(tg_status_name((tg_status)99), "unknown status");
    assert_int_equal(tg_dtype_bytes(TG_IO), 0);
    assert_int_equal(tg_dtype_bytes(TG_BF16), 2);
    assert_int_equal(tg_dtype_bytes(TG_F32X2), 8);
    assert_int_equal(tg_dtype_bytes(TG_I32), 4);
    assert_string_equal(tg_dtype_name(TG_I32), "i32");
    assert_string_equal(tg_dtype_name(TG_F32X2), "f32x2");
    assert_string_equal(tg_dtype_name((tg_dtype)77), "unknown");
}

/* ---- sizes ---- */

static void chunk_sizes_follow_the_sequence(void **state)
{
    (void)state;
    const tg_program p = sample_program(ptx); /* multiple 16, default 64 */
    const struct {
        int64_t tokens, chunk, expected_chunks, expected_chunk;
    } rows[] = {
        {0, 0, 0, 0},
        {1, 0, 1, 16},
        {16, 0, 1, 16},
        {17, 0, 1, 32},
        {64, 0, 1, 64},
        {65, 0, 2, 64},
        {100, 32, 4, 32},
        {1000000, 128, 7813, 128},
        {INT32_MAX, 16, 134217728, 16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tg_sizes sizes = {2, 3, rows[i].tokens, rows[i].chunk};
        assert_int_equal(tg_sizes_check(&p, &sizes, NULL), TG_OK);
        assert_int_equal(tg_size_value(&p, &sizes, TG_SIZE_CHUNKS), rows[i].expected_chunks);
        assert_int_equal(tg_size_value(&p, &sizes, TG_SIZE_CHUNK), rows[i].expected_chunk);
    }
    tg_sizes sizes = {2, 3, 100, 0};
    const tg_term terms[] = {{TG_SIZE_CONST, 1, 5}, {TG_SIZE_TOKENS, 32, 2}, {TG_SIZE_HEADS, 2, 1}};
    assert_int_equal(tg_terms_value(&p, &sizes, terms, 3), 5 * (4 * 2) * 2);
    assert_int_equal(tg_tensor_extent(&p, &sizes, SAMPLE_Q, 0), 2);
    assert_int_equal(tg_tensor_extent(&p, &sizes, SAMPLE_Q, 2), 100);
    assert_int_equal(tg_tensor_extent(&p, &sizes, SAMPLE_Q, 3), 16);
    assert_int_equal(tg_tensor_extent(&p, &sizes, SAMPLE_Q, 4), 1);
}

static void packed_chunks_are_enough(void **state)
{
    (void)state;
    const tg_program p = sample_program_packed(ptx); /* multiple 16, default 64 */
    const struct {
        int64_t batch, tokens, chunk, expected_chunks, expected_chunk;
    } rows[] = {
        {3, 0, 0, 0, 0},    {1, 1, 0, 1, 16},      {4, 20, 0, 4, 32}, /* 20 of 32: none is full */
        {2, 128, 0, 4, 64}, {2, 127, 0, 3, 64},    {3, 100, 32, 6, 32},
        {5, 16, 16, 6, 16}, {7, 1000, 64, 22, 64}, {0, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tg_sizes sizes = {rows[i].batch, 2, rows[i].tokens, rows[i].chunk};
        assert_int_equal(tg_sizes_check(&p, &sizes, NULL), TG_OK);
        assert_int_equal(tg_size_value(&p, &sizes, TG_SIZE_CHUNKS), rows[i].expected_chunks);
        assert_int_equal(tg_size_value(&p, &sizes, TG_SIZE_CHUNK), rows[i].expected_chunk);
    }
    /* however the tokens are dealt to three sequences, of which some may be empty */
    for (int64_t a = 0; a < 40; a++)
        for (int64_t b = 0; b < 40; b++)
            for (int64_t c = a + b == 0; c < 40; c++) {
                tg_sizes sizes = {3, 2, a + b + c, 16};
                int64_t needed = (a + 15) / 16 + (b + 15) / 16 + (c + 15) / 16;
                assert_true(needed <= tg_size_value(&p, &sizes, TG_SIZE_CHUNKS));
            }
}

static void a_decode_step_is_one_chunk(void **state)
{
    (void)state;
    tg_program p = sample_program_decode(ptx); /* multiple 4 */
    p.max_tokens = 100;
    for (int64_t tokens = 0; tokens <= 100; tokens++) {
        tg_sizes sizes = {2, 3, tokens, 16};
        assert_int_equal(tg_sizes_check(&p, &sizes, NULL), TG_OK);
        assert_int_equal(tg_size_value(&p, &sizes, TG_SIZE_CHUNKS), tokens > 0);
        assert_int_equal(tg_size_value(&p, &sizes, TG_SIZE_CHUNK), (tokens + 3) / 4 * 4);
    }
}

static void extents_follow_flags_and_kind(void **state)
{
    (void)state;
    tg_program packed = sample_program_packed(ptx), alone = packed;
    alone.packed = 0;
    const tg_sizes sizes = {3, 8, 100, 32}; /* groups of 2 */
    const struct {
        const tg_program *program;
        const char *name;
        int64_t expected[5];
    } rows[] = {
        {&packed, "q", {1, 4, 100, 16, 1}},  {&alone, "q", {3, 4, 100, 16, 1}},  {&packed, "v", {1, 8, 100, 16, 1}},
        {&alone, "v", {3, 8, 100, 16, 1}},   {&packed, "S0", {3, 8, 16, 16, 1}}, {&packed, "A", {1, 8, 16, 1, 1}},
        {&packed, "bias", {1, 1, 16, 1, 1}}, {&packed, "cu", {1, 1, 4, 1, 1}},   {&packed, "index", {3, 1, 1, 1, 1}},
        {&packed, "C", {1, 4, 6, 16, 16}},   {&alone, "C", {3, 4, 4, 16, 16}},   {&packed, "sum", {1, 8, 16, 3, 1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t axis = 0; axis < 5; axis++) {
            int tensor = tg_program_tensor(rows[i].program, rows[i].name);
            assert_int_equal(tg_tensor_extent(rows[i].program, &sizes, (uint32_t)tensor, axis), rows[i].expected[axis]);
        }
    assert_int_equal(tg_workspace_bytes(&packed, &sizes), 4 * 6 * 1024 + 256 /* first */ + 8 * 16 * 3 * 4);
}

static void wrong_sizes_are_all_named(void **state)
{
    (void)state;
    const tg_program p = sample_program(ptx);
    LOG(log);
    tg_sizes sizes = {-1, 0, INT64_MAX, 17};
    assert_int_equal(tg_sizes_check(&p, &sizes, &log_sink), TG_E_ARGUMENT);
    assert_int_equal(log.n, 4);
    assert_says(&log, "sizes.batch: expected 0..2147483647, found -1");
    assert_says(&log, "sizes.heads: expected 1..2147483647, found 0");
    assert_says(&log, "sizes.tokens: expected 0..2147483647, found 9223372036854775807");
    assert_says(&log, "sizes.chunk: expected a multiple of 16, found 17");
    assert_int_equal(tg_sizes_check(&p, NULL, NULL), TG_E_ARGUMENT);
}

static void sizes_fit_the_kind_of_program(void **state)
{
    (void)state;
    tg_program packed = sample_program_packed(ptx), decode = sample_program_decode(ptx);
    const tg_program maps = sample_program_maps(ptx); /* B * NH blocks */
    packed.chunk_multiple = 1;
    const struct {
        const tg_program *program;
        tg_sizes sizes;
        const char *expected; /* NULL: accepted */
    } rows[] = {
        {&packed, {2, 3, 10, 0}, "TG0703 sizes.heads: expected a multiple of 2, the heads of a group, found 3"},
        {&packed, {2, 4, 10, 0}, NULL},
        {&packed, {0, 2, 10, 0}, "TG0705 sizes.tokens: expected 0 in a packed call of no sequences, found 10"},
        {&packed, {0, 2, 0, 0}, NULL},
        {&packed, {INT32_MAX, 2, 1, 1}, "TG0702 chunks: expected at most 2147483647, found 2147483648"},
        {&decode,
         {2, 3, 21, 0},
         "TG0704 sizes.tokens: expected at most 20: schedule recurrence is for decode steps, found "
         "21"},
        {&decode, {2, 3, 20, 0}, NULL},
        {&decode, {2, 4, 4, 0}, "TG0703 sizes.heads: expected a multiple of 3"},
        {&maps, {2, 6, 4, 0}, NULL},
        {&maps, {0, 6, 4, 0}, NULL},
        {&maps, {1, 6, 4, 0}, "TG0706 kernel recurrence: expected a multiple of 4 blocks, the cluster, found 6"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LOG(log);
        tg_status expected = rows[i].expected ? TG_E_ARGUMENT : TG_OK;
        assert_int_equal(tg_sizes_check(rows[i].program, &rows[i].sizes, &log_sink), expected);
        if (rows[i].expected)
            assert_says(&log, rows[i].expected);
    }
}

static void products_beyond_the_limits_are_refused(void **state)
{
    (void)state;
    tg_program p = sample_program(ptx);
    LOG(grid);
    tg_sizes sizes = {65536, 32768, 1, 0}; /* 2^31 blocks */
    assert_int_equal(tg_sizes_check(&p, &sizes, &grid_sink), TG_E_ARGUMENT);
    assert_says(&grid, "TG0702 kernel recurrence: expected at most 2147483647 blocks, found 2147483648");
    LOG(tensor);
    p.kernels[0].n_grid = 1;
    sizes = (tg_sizes){INT32_MAX, INT32_MAX, INT32_MAX, 0}; /* saturates rather than wraps */
    assert_int_equal(tg_sizes_check(&p, &sizes, &tensor_sink), TG_E_ARGUMENT);
    assert_says(&tensor, "tensor q: expected at most 72057594037927936 bytes, found 9223372036854775807");
}

static void workspace_is_aligned_and_64_bit(void **state)
{
    (void)state;
    tg_program p = sample_program(ptx);
    p.n_tensors = 11;
    p.tensors[9] = (tg_tensor_info){"one", TG_F32X2, 0, {TG_CHUNK, 0, 0}, 0, 0, 0, 0};
    p.tensors[10] = (tg_tensor_info){"states", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}, 0, 0, 0, 0};
    assert_int_equal(tg_program_verify(&p, NULL), TG_OK);
    tg_sizes sizes = {1, 1, 65, 0};
    assert_int_equal(tg_workspace_offset(&p, &sizes, SAMPLE_C), 0);
    assert_int_equal(tg_workspace_offset(&p, &sizes, 9), 1024);
    assert_int_equal(tg_workspace_offset(&p, &sizes, 10), 1024 + 256);
    assert_int_equal(tg_workspace_bytes(&p, &sizes), 1024 + 256 + 2 * 1024);
    p.tensors[10].segment = 3; /* chunks to an entry */
    assert_int_equal(tg_program_verify(&p, NULL), TG_OK);
    assert_int_equal(tg_workspace_bytes(&p, &sizes), 1024 + 256 + 1024);
    sizes.tokens = 193; /* four chunks */
    assert_int_equal(tg_tensor_extent(&p, &sizes, 10, 2), 2);
    p.tensors[10].segment = 0;
    tg_program packed = sample_program_packed(ptx); /* every sequence has as many as the longest could need */
    const uint32_t last = packed.n_tensors++;
    packed.tensors[last] = (tg_tensor_info){"states", TG_F32, 0, {TG_CHUNK, TG_DQK}, 0, 3, 0, 0};
    assert_int_equal(tg_program_verify(&packed, NULL), TG_OK);
    sizes = (tg_sizes){5, packed.group, 3 * packed.chunk_default, packed.chunk_default}; /* 3 + 5 slots */
    assert_int_equal(tg_tensor_extent(&packed, &sizes, last, 0), 5);
    assert_int_equal(tg_tensor_extent(&packed, &sizes, last, 2), 3);
    packed.tensors[last].segment = 0;
    assert_int_equal(tg_tensor_extent(&packed, &sizes, last, 0), 1);
    assert_int_equal(tg_tensor_extent(&packed, &sizes, last, 2), 8);
    sizes = (tg_sizes){64, 64, 1 << 20, 0}; /* 2^12 * 2^14 chunks * 2^10 bytes = 2^36 */
    assert_int_equal(tg_sizes_check(&p, &sizes, NULL), TG_OK);
    assert_true(tg_workspace_bytes(&p, &sizes) > UINT64_C(1) << 36);
    sizes.batch = 0;
    assert_int_equal(tg_workspace_bytes(&p, &sizes), 0);
}

/* Every chunk is in one piece, each of which is shorter than the one before, but for short calls. */
static void calls_are_taken_in_pieces(void **state)
{
    (void)state;
    tg_program p = sample_program(ptx);
    p.tensors[SAMPLE_C].between = SAMPLE_S + 1;
    for (p.pieces = 2; p.pieces <= 8; p.pieces++)
        for (int64_t tokens = 1; tokens < 6000; tokens += 37) {
            const tg_sizes sizes = {1, 1, tokens, 0};
            const int64_t chunks = tg_size_value(&p, &sizes, TG_SIZE_CHUNKS);
            int64_t end = 0, token = 0, before = chunks;
            struct piece piece = {.is_last = false};
            assert_int_equal(tg_program_verify(&p, NULL), TG_OK);
            for (uint32_t i = 0; i < piece_count(&p, false); i++) {
                if (!piece_of(&p, &sizes, p.pieces, i, &piece))
                    continue;
                const int64_t n = tg_size_value(&p, &piece.sizes, TG_SIZE_CHUNKS);
                assert_int_equal(piece.first, end);
                assert_true(n > 0 && n <= before + 1);
                assert_int_equal(piece_size(&p, &piece, TG_SIZE_CHUNK), tg_size_value(&p, &sizes, TG_SIZE_CHUNK));
                assert_int_equal(piece_size(&p, &piece, TG_SIZE_FIRST), end);
                end += n;
                token += piece.sizes.tokens;
                before = n;
            }
            assert_true(piece.is_last);
            assert_int_equal(end, chunks);
            assert_int_equal(token, tokens);
            assert_true(piece_of(&p, &sizes, piece_count(&p, true), 0, &piece));
            assert_int_equal(piece.sizes.tokens, tokens);
        }
}

static void places_are_shared(void **state)
{
    (void)state;
    tg_program p = sample_program(ptx);
    const tg_sizes sizes = {1, 1, 65, 0};
    p.n_tensors = 11;
    p.tensors[9] = (tg_tensor_info){.name = "one", .dtype = TG_F32, .axes = {TG_T}};
    p.tensors[10] = p.tensors[SAMPLE_C];
    memcpy(p.tensors[10].name, "other", sizeof "other");
    p.tensors[10].place = SAMPLE_C + 1;
    assert_int_equal(tg_program_verify(&p, NULL), TG_OK);
    assert_int_equal(tg_workspace_offset(&p, &sizes, 9), 1024);
    assert_int_equal(tg_workspace_offset(&p, &sizes, 10), 0);
    assert_int_equal(tg_workspace_bytes(&p, &sizes), 1024 + 512);
}

static void states_are_paired_by_a_final_0(void **state)
{
    (void)state;
    tg_program p = sample_program(ptx);
    assert_int_equal(tg_tensor_source(&p, SAMPLE_S), SAMPLE_S0);
    assert_int_equal(tg_tensor_source(&p, SAMPLE_H), TG_SOURCE_NONE);
    assert_int_equal(tg_tensor_source(&p, SAMPLE_Q), TG_SOURCE_NONE);
    strcpy(p.tensors[SAMPLE_S0].name, "dS"); /* a gradient flows the other way */
    strcpy(p.tensors[SAMPLE_S].name, "dS0");
    assert_int_equal(tg_tensor_source(&p, SAMPLE_S), SAMPLE_S0);
    strcpy(p.tensors[SAMPLE_S].name, "dP0");
    assert_int_equal(tg_tensor_source(&p, SAMPLE_S), TG_SOURCE_ZERO);
    assert_int_equal(tg_program_tensor(&p, "dP0"), SAMPLE_S);
    assert_int_equal(tg_program_tensor(&p, "S"), -1);
    p = sample_program(ptx);
    p.tensors[SAMPLE_S0].flags |= TG_SHARED; /* another extent: no copy */
    assert_int_equal(tg_tensor_source(&p, SAMPLE_S), TG_SOURCE_ZERO);
    p.tensors[SAMPLE_S].flags |= TG_SHARED;
    assert_int_equal(tg_tensor_source(&p, SAMPLE_S), SAMPLE_S0);
    p.tensors[SAMPLE_S].flags |= TG_IN; /* holds what it shall hold */
    assert_int_equal(tg_tensor_source(&p, SAMPLE_S), TG_SOURCE_NONE);
    p.tensors[SAMPLE_H].flags |= TG_NO_BATCH; /* has elements without a batch */
    assert_int_equal(tg_tensor_source(&p, SAMPLE_H), TG_SOURCE_ZERO);
}

static void slots_are_the_states_of_pools(void **state)
{
    (void)state;
    tg_program p = sample_program_packed(ptx);
    for (uint32_t i = 0; i < p.n_tensors; i++) {
        const char *name = p.tensors[i].name;
        bool expected = strcmp(name, "S") == 0 || strcmp(name, "S0") == 0;
        assert_int_equal(tg_tensor_is_slot(&p, i), expected);
    }
    tg_program decode = sample_program_decode(ptx); /* has a workspace without tokens */
    for (uint32_t i = 0; i < decode.n_tensors; i++)
        assert_int_equal(tg_tensor_is_slot(&decode, i), i == SAMPLE_S0 || i == SAMPLE_S);
    tg_tensor_info *states = &p.tensors[tg_program_tensor(&p, "S")]; /* as of segments that the caller keeps */
    const tg_tensor_info final = *states;
    memmove(&states->axes[1], final.axes, 2);
    states->axes[0] = TG_CHUNK;
    states->segment = 2;
    assert_false(tg_tensor_is_slot(&p, (uint32_t)(states - p.tensors)));
    assert_int_equal(tg_tensor_source(&p, (uint32_t)(states - p.tensors)), TG_SOURCE_NONE);
    *states = final;
    p.pooled = 0;
    assert_false(tg_tensor_is_slot(&p, (uint32_t)tg_program_tensor(&p, "S")));
}

/* ---- verify ---- */

/* One row for every rule: a name, what breaks it, what the message says. */
/* clang-format off */
#define DAMAGES(ROW) \
    ROW(variant, memset(p->variant, 'x', sizeof p->variant), "variant: expected at most 31 printable") \
    ROW(variant_empty, p->variant[0] = '\0', "variant: expected at most 31 printable") \
    ROW(schedule, p->schedule[0] = '\n', "schedule: expected") \
    ROW(arch, strcpy(p->arch, "gfx90a"), "arch: expected a name like sm_80") \
    ROW(arch_suffix, strcpy(p->arch, "sm_90ax"), "arch: expected a name like sm_80") \
    ROW(arch_exact, p->arch_exact = 2, "arch_exact: expected 0 or 1, found 2") \
    ROW(io, p->io_dtype = TG_IO, "io_dtype: expected bf16, f16 or f32, found value 1") \
    ROW(packed, p->packed = 2, "packed: expected 0 or 1, found 2") \
    ROW(packed_cu, p->packed = 1, "TG0723 packed program: expected the i32 input cu of axes [cuts], found none") \
    ROW(pooled, p->pooled = 5, "pooled: expected 0..4, found 5") \
    ROW(pooled_index, p->pooled = 1, "TG0723 pooled program: expected the i32 input index of axes [B], found none") \
    ROW(group, p->group = 0, "group: expected 1..65536, found 0") \
    ROW(group_large, p->group = 65537, "group: expected 1..65536, found 65537") \
    ROW(max_tokens, p->max_tokens = 1 << 25, "max_tokens: expected at most 16777216, found 33554432") \
    ROW(pieces, p->pieces = 9, "pieces: expected at most 8, and 0 where sequences are packed, states in a pool or tokens of a decode step, found 9") \
    ROW(pieces_of_steps, (p->pieces = 2, p->max_tokens = 8), "pieces: expected at most 8, and 0 where") \
    ROW(pieces_without_memory, p->pieces = 2, "tensors[7] (S): expected, of a program with pieces, an initial state for it and one tensor between pieces, found S0 and 0") \
    ROW(pieces_without_start, (p->pieces = 2, p->tensors[5].name[1] = 'x'), "tensors[7] (S): expected, of a program with pieces, an initial state for it and one tensor between pieces, found none and 0") \
    ROW(between_of_one, p->tensors[8].between = 8, "tensors[8].between (C): expected 0 or, in programs with pieces") \
    ROW(between_of_output, (p->pieces = 2, p->tensors[8].between = 7), "tensors[8].between (C): expected 0 or, in programs with pieces") \
    ROW(between_of_none, (p->pieces = 2, p->tensors[8].between = 77), "tensors[8].between (C): expected 0 or, in programs with pieces") \
    ROW(n_scalars, p->n_scalars = 0, "n_scalars: expected 1..4, found 0") \
    ROW(many_scalars, p->n_scalars = 5, "n_scalars: expected 1..4, found 5") \
    ROW(scalar_first, p->scalars[0].name[0] = 'S', "scalars[0].name: expected scale, found Scale") \
    ROW(scalar_name, strcpy(p->scalars[1].name, "t u"), "scalars[1].name: expected an identifier of at most 15") \
    ROW(scalar_long, memset(p->scalars[1].name, 'x', 16), "scalars[1].name: expected an identifier of at most 15") \
    ROW(scalar_twice, strcpy(p->scalars[1].name, "scale"), "scalars[1].name: expected every name once, found scale again") \
    ROW(scalar_value, p->scalars[1].value = NAN, "scalars[1].value (tau): expected a finite number, found") \
    ROW(scalar_infinite, p->scalars[0].value = INFINITY, "scalars[0].value (scale): expected a finite number, found inf") \
    ROW(dqk, p->dqk = 0, "dqk: expected 1..65536, found 0") \
    ROW(dhv, p->dhv = 1u << 31, "dhv: expected 1..65536, found 2147483648") \
    ROW(multiple, p->chunk_multiple = 0, "chunk_multiple: expected 1..16777216, found 0") \
    ROW(default, p->chunk_default = 65, "chunk_default: expected a multiple of 16 up to 16777216, found 65") \
    ROW(most, p->chunk_most = 48, "chunk_most: expected 0 or at least chunk_default, 64, found 48") \
    ROW(n_tensors, p->n_tensors = 65, "n_tensors: expected 1..64, found 65") \
    ROW(n_kernels, p->n_kernels = 0, "n_kernels: expected 1..32, found 0") \
    ROW(name, strcpy(p->tensors[1].name, "a b"), "tensors[1].name: expected an identifier") \
    ROW(twice, strcpy(p->tensors[1].name, "q"), "tensors[1].name: expected every name once, found q again") \
    ROW(dtype, p->tensors[1].dtype = TG_IO, "tensors[1].dtype (k): expected bf16, f16, f32, f32x2 or i32, found value 1") \
    ROW(dtype_last, p->tensors[1].dtype = TG_I32 + 1, "tensors[1].dtype (k): expected bf16, f16, f32, f32x2 or i32, found value 7") \
    ROW(state_dtype, p->tensors[SAMPLE_S].dtype = TG_BF16, "tensors[7].dtype (S): expected f32 like S0, found bf16") \
    ROW(flags, p->tensors[1].flags |= 64, "tensors[1].flags (k): expected a combination of in, out, optional, no batch, shared and no heads, found 65") \
    ROW(flags_optional, p->tensors[SAMPLE_C].flags = TG_OPTIONAL, "tensors[8].flags (C): expected optional with in or out only, found 4") \
    ROW(flags_heads, p->tensors[1].flags |= TG_SHARED | TG_NO_HEADS, "tensors[1].flags (k): expected shared or no heads, found both") \
    ROW(cuts, p->tensors[SAMPLE_F].axes[0] = TG_CUTS, "tensors[3].axes (f): expected axis cuts in packed programs only") \
    ROW(order, p->tensors[1].flags = 0, "tensors[2].flags (v): expected the signature before all workspace") \
    ROW(axis, p->tensors[1].axes[1] = TG_N_AXES, "tensors[1].axes[1] (k): expected an axis below 8") \
    ROW(gap, p->tensors[SAMPLE_F].axes[2] = TG_T, "tensors[3].axes[2] (f): expected an axis below 8 and none after an unused one") \
    ROW(segment, p->tensors[1].segment = 256, "tensors[1].segment (k): expected 0 but for tensors with axis chunk, found 256") \
    ROW(place, p->tensors[1].place = SAMPLE_C + 1, "tensors[1].place (k): expected 0, or 1 + the number of a workspace tensor of the same size") \
    ROW(place_of_itself, p->tensors[SAMPLE_C].place = SAMPLE_C + 1, "with place 0, found 9") \
    ROW(place_nowhere, p->tensors[SAMPLE_C].place = 255, "with place 0, found 255") \
    ROW(place_of_an_input, p->tensors[SAMPLE_C].place = SAMPLE_S + 1, "with place 0, found 8") \
    ROW(entry, p->kernels[1].name[0] = '9', "kernels[1].name: expected an identifier") \
    ROW(ptx, p->kernels[1].ptx = NULL, "kernel second: ptx: expected text") \
    ROW(ptx_bytes, p->kernels[1].ptx_bytes--, "kernel second: ptx: expected its only NUL after") \
    ROW(cubin, p->kernels[1].cubin = NULL, "kernel second: cubin: expected a cubin and its size or neither, found 8 bytes at NULL") \
    ROW(threads, p->kernels[1].threads = 2048, "kernel second: threads: expected 1..1024, found 2048") \
    ROW(shared, p->kernels[1].shared_bytes = UINT32_MAX, "kernel second: shared_bytes: expected at most 1048576, found 4294967295") \
    ROW(n_grid, p->kernels[1].n_grid = 0, "kernel second: n_grid: expected 1..6, found 0") \
    ROW(grid_size, p->kernels[1].grid[1].size = 6, "kernel second: grid[1].size: expected 0..5, found 6") \
    ROW(grid_div, p->kernels[1].grid[1].div = 0, "kernel second: grid[1]: expected div and mul of at least 1, found 0 and 1") \
    ROW(n_args, p->kernels[1].n_args = 129, "kernel second: n_args: expected at most 128, found 129") \
    ROW(kind, p->kernels[1].args[2].kind = 5, "kernel second: args[2].kind: expected 0..4, found 5") \
    ROW(index, p->kernels[1].args[0].index = 9, "kernel second: args[0].index: expected below 9, found 9") \
    ROW(size_index, p->kernels[1].args[33].index = 7, "kernel second: args[33].index: expected below 7, found 7") \
    ROW(scalar_index, p->kernels[1].args[35].index = 2, "kernel second: args[35].index: expected below 2, found 2") \
    ROW(parts, p->tensors[1].parts = 2, "tensors[1].parts (k): expected more than 0 exactly for workspace tensors") \
    ROW(arg_axis, p->kernels[1].args[2].axis = 5, "kernel second: args[2].axis: expected below 5, found 5") \
    ROW(absent_axis, p->kernels[1].args[2].axis = 4, "kernel second: args[2].axis: expected an axis of q, found 4") \
    ROW(arg_reserved, p->kernels[1].args[2].reserved = 1, "kernel second: args[2].reserved: expected 0, found 1") \
    ROW(arg_map, p->kernels[1].args[2].kind = TG_ARG_MAP, "kernel second: args[2].axis: expected below 0, found 1") \
    ROW(cluster, p->kernels[1].cluster = 2, "kernel second: expected sm_90 or newer for tensor maps, a cluster or overlap, found sm_80") \
    ROW(overlap, p->kernels[1].overlap = 1, "kernel second: expected sm_90 or newer for tensor maps, a cluster or overlap, found sm_80") \
    ROW(maps, p->kernels[1].n_maps = 1, "kernel second: expected sm_90 or newer for tensor maps, a cluster or overlap, found sm_80")

/* The same for kernels with tensor maps; MAP(i) is one, ARG(i) its argument. */
#define MAP(i) p->kernels[0].maps[i]
#define ARG(i) p->kernels[0].args[TG_MAX_MAPS - 1 - i]
#define MAP_DAMAGES(ROW) \
    ROW(large_cluster, p->kernels[0].cluster = 9, "TG0721 kernel recurrence: cluster: expected 0..8, found 9") \
    ROW(overlap_twice, p->kernels[0].overlap = 3, "TG0721 kernel recurrence: overlap: expected 0..2, found 3") \
    ROW(n_maps, p->kernels[0].n_maps = TG_MAX_MAPS + 1, "TG0721 kernel recurrence: n_maps: expected at most 9, found 10") \
    ROW(old_arch, strcpy(p->arch, "sm_89"), "TG0721 kernel recurrence: expected sm_90 or newer for tensor maps") \
    ROW(map_number, p->kernels[0].n_maps = 8, "TG0721 kernel recurrence: args[0].axis: expected below 8, found 8") \
    ROW(map_arg, ARG(0).index = 1, "TG0721 kernel recurrence: args[8].index: expected 0, the tensor of its map, found 1") \
    ROW(map_arg_tensor, ARG(0).index = MAP(0).tensor = 9, "TG0721 kernel recurrence: args[8].index: expected below 9, found 9") \
    ROW(map_not_passed, ARG(1) = (tg_arg_desc){.kind = TG_ARG_POINTER}, "TG0724 kernel recurrence: maps[1] (k): expected one argument with it, found 0") \
    ROW(map_passed_twice, ARG(1) = ARG(2), "TG0724 kernel recurrence: maps[1] (k): expected one argument with it, found 0") \
    ROW(map_passed_again, p->kernels[0].args[9] = ARG(2), "TG0724 kernel recurrence: maps[2] (v): expected one argument with it, found 2") \
    ROW(map_tensor, (p->kernels[0].args[8].kind = TG_ARG_POINTER, p->kernels[0].args[8].axis = 0, MAP(0).tensor = 9), "TG0724 kernel recurrence: maps[0].tensor: expected below 9, found 9") \
    ROW(map_axes, ARG(0).index = MAP(0).tensor = 5, "TG0724 kernel recurrence: maps[0].tensor: expected one of axes [T, dqk], [T, dhv] or [T, position], found f") \
    ROW(map_first_axis, p->tensors[8].axes[0] = TG_CHUNK, "TG0724 kernel recurrence: maps[8].tensor: expected one of axes [T, dqk], [T, dhv] or [T, position], found u") \
    ROW(map_three_axes, (p->tensors[8].axes[2] = TG_PARTS, p->tensors[8].parts = 2), "TG0724 kernel recurrence: maps[8].tensor: expected one of axes [T, dqk], [T, dhv] or [T, position], found u") \
    ROW(map_dtype, p->tensors[1].dtype = TG_F32X2, "TG0724 kernel recurrence: maps[1].tensor: expected one of bf16, f16 or f32, found k of f32x2") \
    ROW(map_swizzle, MAP(1).swizzle = 4, "TG0724 kernel recurrence: maps[1].swizzle (k): expected 0..3, found 4") \
    ROW(no_columns, MAP(1).columns = 0, "TG0724 kernel recurrence: maps[1].columns (k): expected a multiple of 16 bytes up to 32, found 0 columns, 0 bytes") \
    ROW(odd_columns, MAP(1).columns = 12, "maps[1].columns (k): expected a multiple of 16 bytes up to 32, found 12 columns, 24 bytes") \
    ROW(span_32, MAP(1).columns = 24, "maps[1].columns (k): expected a multiple of 16 bytes up to 32, found 24 columns, 48 bytes") \
    ROW(span_64, MAP(7).columns = 32, "maps[7].columns (h): expected a multiple of 16 bytes up to 64, found 32 columns, 128 bytes") \
    ROW(span_128, MAP(3).columns = 64, "maps[3].columns (w): expected a multiple of 16 bytes up to 128, found 64 columns, 256 bytes") \
    ROW(span_plain, (MAP(3).swizzle = 0, MAP(3).columns = 64), "maps[3].columns (w): expected a multiple of 16 bytes up to 128, found 64 columns, 256 bytes") \
    ROW(map_width, MAP(0).columns = 32, "TG0724 kernel recurrence: maps[0].spans (q): expected 1, as 32 columns do not divide the width 48, found 2") \
    ROW(map_width_dhv, (p->dhv = 48, MAP(2).rows = 64, MAP(2).spans = 2), "TG0724 kernel recurrence: maps[2].spans (v): expected 1, as 64 columns do not divide the width 48, found 2") \
    ROW(no_rows, MAP(1).rows = 0, "TG0724 kernel recurrence: maps[1].rows (k): expected 1..256, found 0") \
    ROW(many_rows, MAP(1).rows = 257, "TG0724 kernel recurrence: maps[1].rows (k): expected 1..256, found 257") \
    ROW(no_spans, MAP(1).spans = 0, "TG0724 kernel recurrence: maps[1].spans (k): expected 1..256, found 0") \
    ROW(many_spans, MAP(4).spans = 257, "TG0724 kernel recurrence: maps[4].spans (g): expected 1..256, found 257") \
    ROW(large_box, MAP(2).spans = 4, "TG0724 kernel recurrence: maps[2] (v): expected a box within the 100000 bytes of shared memory, found 131072")
/* clang-format on */

#define DEFINE(name, statement, expected)                                                                              \
    static void damage_##name(tg_program *p)                                                                           \
    {                                                                                                                  \
        statement;                                                                                                     \
    }
DAMAGES(DEFINE)
MAP_DAMAGES(DEFINE)

struct damage {
    void (*apply)(tg_program *p);
    const char *expected;
};

#define LIST(name, statement, expected) {damage_##name, expected},
static const struct damage damages[] = {DAMAGES(LIST)};
static const struct damage map_damages[] = {MAP_DAMAGES(LIST)};

static void assert_each_is_named(const tg_program *whole, const struct damage *rows, size_t n)
{
    assert_int_equal(tg_program_verify(whole, NULL), TG_OK);
    for (size_t i = 0; i < n; i++) {
        tg_program p = *whole;
        rows[i].apply(&p);
        LOG(log);
        assert_int_equal(tg_program_verify(&p, &log_sink), TG_E_FORMAT);
        assert_says(&log, rows[i].expected);
        void *bytes;
        size_t size;
        assert_int_equal(tg_program_bytes(&p, &bytes, &size, NULL), TG_E_FORMAT);
    }
}

static void every_wrong_field_is_named(void **state)
{
    (void)state;
    const tg_program rich = sample_program_rich(ptx, cubin, sizeof cubin);
    const tg_program maps = sample_program_maps(ptx);
    assert_each_is_named(&rich, damages, sizeof damages / sizeof *damages);
    assert_each_is_named(&maps, map_damages, sizeof map_damages / sizeof *map_damages);
}

/* What the rules leave free. */
static void boxes_may_have_any_legal_shape(void **state)
{
    (void)state;
    const struct {
        uint32_t dqk;
        tg_map_desc map; /* of q, bf16 */
    } rows[] = {
        {128, {0, TG_SWIZZLE_128, 64, 64, 2}},   {128, {0, TG_SWIZZLE_128, 64, 256, 1}},
        {128, {0, TG_SWIZZLE_128, 64, 64, 3}}, /* beyond the width */
        {40, {0, TG_SWIZZLE_NONE, 8, 128, 5}},   {40, {0, TG_SWIZZLE_128, 40, 64, 1}},
        {72, {0, TG_SWIZZLE_64, 24, 1, 3}},      {16, {0, TG_SWIZZLE_32, 16, 16, 1}},
        {2048, {0, TG_SWIZZLE_NONE, 8, 1, 256}}, {64, {0, TG_SWIZZLE_NONE, 64, 32, 1}},
        {256, {0, TG_SWIZZLE_128, 64, 256, 4}}, /* all of shared memory */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LOG(log);
        tg_program p = sample_program_maps(ptx);
        tg_kernel *kernel = &p.kernels[0];
        p.dqk = rows[i].dqk;
        kernel->shared_bytes = 131072;
        kernel->n_maps = kernel->n_args = 1;
        kernel->maps[0] = rows[i].map;
        kernel->args[0] = (tg_arg_desc){.kind = TG_ARG_MAP};
        if (tg_program_verify(&p, &log_sink) != TG_OK)
            fail_msg("row %zu: %s", i, log.text);
    }
    tg_program p = sample_program_maps(ptx);
    for (uint8_t cluster = 0; cluster <= 8; cluster++) {
        p.kernels[0].cluster = cluster;
        assert_int_equal(tg_program_verify(&p, NULL), TG_OK);
    }
    strcpy(p.arch, "sm_100");
    assert_int_equal(tg_program_verify(&p, NULL), TG_OK);
}

/* The two inputs that only packed and pooled programs have, changed field by field. */
static void readers_are_exact(void **state)
{
    (void)state;
    const struct {
        const char *name;
        tg_tensor_info wrong;
    } rows[] = {
        {"cu", {"cut", TG_I32, TG_IN | TG_NO_BATCH | TG_NO_HEADS, {TG_CUTS}, 0, 0, 0, 0}},
        {"cu", {"cu", TG_F32, TG_IN | TG_NO_BATCH | TG_NO_HEADS, {TG_CUTS}, 0, 0, 0, 0}},
        {"cu", {"cu", TG_I32, TG_IN | TG_NO_HEADS, {TG_CUTS}, 0, 0, 0, 0}},
        {"cu", {"cu", TG_I32, TG_IN | TG_OPTIONAL | TG_NO_BATCH | TG_NO_HEADS, {TG_CUTS}, 0, 0, 0, 0}},
        {"cu", {"cu", TG_I32, TG_IN | TG_NO_BATCH | TG_NO_HEADS, {TG_T}, 0, 0, 0, 0}},
        {"index", {"slots", TG_I32, TG_IN | TG_NO_HEADS, {0}, 0, 0, 0, 0}},
        {"index", {"index", TG_F32, TG_IN | TG_NO_HEADS, {0}, 0, 0, 0, 0}},
        {"index", {"index", TG_I32, TG_IN, {0}, 0, 0, 0, 0}},
        {"index", {"index", TG_I32, TG_IN | TG_NO_HEADS, {TG_CUTS}, 0, 0, 0, 0}},
    };
    tg_program p = sample_program_packed(ptx);
    assert_int_equal(tg_program_verify(&p, NULL), TG_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LOG(log);
        p = sample_program_packed(ptx);
        p.tensors[tg_program_tensor(&p, rows[i].name)] = rows[i].wrong;
        assert_int_equal(tg_program_verify(&p, &log_sink), TG_E_FORMAT);
        assert_says(&log, rows[i].name[0] == 'c' ? "TG0723 packed program: expected the i32 input cu"
                                                 : "TG0723 pooled program: expected the i32 input index");
    }
}

static void programs_of_another_version_are_refused(void **state)
{
    (void)state;
    LOG(log);
    tg_program p = sample_program(ptx);
    p.version = 1;
    assert_int_equal(tg_program_verify(&p, &log_sink), TG_E_VERSION);
    p = sample_program(ptx);
    p.struct_size -= 8;
    assert_int_equal(tg_program_verify(&p, &log_sink), TG_E_VERSION);
    assert_says(&log, "program: expected version 8 of");
    assert_int_equal(tg_program_verify(NULL, &log_sink), TG_E_ARGUMENT);
}

/* ---- sets ---- */

static tg_program set_programs[SAMPLE_SET_PROGRAMS];
static tg_branch set_branches[SAMPLE_SET_BRANCHES];

static void steps_are_the_nearest(void **state)
{
    (void)state;
    for (uint32_t step = 8; step < TG_PICK_TOKENS; step++)
        assert_int_equal(tg_pick_step(tg_pick_size(step), TG_PICK_TOKENS), step);
    for (int64_t size = 1; size < INT64_C(1) << 20; size += 1 + size / 100) {
        const double exact = TG_PICK_STEPS * log2((double)size);
        assert_true(fabs(exact - tg_pick_step(size, TG_PICK_TOKENS)) <= 0.5 + 1e-3);
        assert_true(fabs(exact / TG_PICK_STEPS - (double)tg_pick_log(size) / 65536) < 0.09);
    }
    assert_int_equal(tg_pick_step(-3, 5), 0);
    assert_int_equal(tg_pick_step(INT64_MAX, 5), 4);
    assert_int_equal(tg_pick_step(INT64_MAX, 1000), 160);
}

/* The point of the sample are (B NH, T): (2, 16), (4, 64), (6, 256) for programs 0, 1, 2. */
static void a_set_takes_the_nearest_program(void **state)
{
    (void)state;
    const tg_set set = sample_set("ptx", set_programs, set_branches);
    for (uint32_t h = 0; h < TG_PICK_HEADS; h++)
        for (uint32_t t = 0; t < TG_PICK_TOKENS; t++)
            set.branches[0].picks[h][t] = 2;
    set.branches[0].picks[12][40] = 0; /* 8 heads, 1024 tokens */
    const struct {
        tg_sizes sizes;
        int program;
    } rows[] = {
        {{9, 2, 16, 0}, 2},   {{1, 2, 16, 0}, 0},       {{2, 1, 16, 0}, 0},
        {{2, 1, 22, 0}, 0},   {{1, 2, 11, 0}, 2}, /* beyond half an octave */
        {{1, 4, 64, 0}, 1},   {{2, 2, 90, 0}, 1},       {{3, 2, 300, 0}, 2},
        {{1, 8, 1024, 0}, 0}, {{8, 1, 1100, 0}, 0},     {{8, 1, 1130, 0}, 2},
        {{1, 8, 950, 0}, 0},  {{100, 100, 5000, 0}, 2}, {{1, 8, 1024, 16}, 2}, /* program 0 takes multiples of 32 */
        {{1, 4, 64, 64}, 1},
    };
    assert_int_equal(tg_set_verify(&set, NULL), TG_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (tg_set_pick(&set, 0, &rows[i].sizes, NULL) != rows[i].program)
            fail_msg("row %zu: expected %d, found %d", i, rows[i].program, tg_set_pick(&set, 0, &rows[i].sizes, NULL));
    /* Clusters of two do not divide three heads: the first that can. */
    set.branches[1].picks[6][80] = 2;
    assert_int_equal(tg_set_pick(&set, 1, &(tg_sizes){1, 3, 1 << 20, 0}, NULL), 3);
    /* Of packed sequences the tokens of one count. */
    for (int i = 0; i < 3; i++)
        set.programs[i].packed = 1;
    set.branches[0].n_points = 0;
    assert_int_equal(tg_set_pick(&set, 0, &(tg_sizes){4, 2, 4096, 0}, NULL), 0);
    assert_int_equal(tg_set_pick(&set, 0, &(tg_sizes){8, 1, 1024, 0}, NULL), 2);
}

static void a_set_says_what_there_is(void **state)
{
    (void)state;
    const tg_set set = sample_set("ptx", set_programs, set_branches);
    const struct {
        int cc;
        uint32_t dqk, dhv;
        int branch;
    } rows[] = {{80, 16, 16, 0},  {89, 16, 16, 0},  {90, 16, 16, 1}, {120, 16, 0, 1}, {90, 32, 0, 2},
                {80, 32, 16, -1}, {75, 16, 16, -1}, {90, 0, 16, -1}, {90, 16, 8, -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LOG(log);
        assert_int_equal(tg_set_branch(&set, rows[i].cc, rows[i].dqk, rows[i].dhv, &log_sink), rows[i].branch);
        assert_int_equal(log.n, rows[i].branch < 0);
    }
    LOG(log);
    assert_int_equal(tg_set_branch(&set, 80, 64, 16, &log_sink), -1);
    assert_says(&log,
                "TG0732 set of mlstm-sig: expected one of dqk 16 dhv 16 on sm_80 or newer, dqk 16 dhv 16 on sm_90 or "
                "newer, dqk 32 dhv 16 on sm_90 or newer, found dqk 64 dhv 16 on sm_80");
    LOG(why);
    assert_int_equal(tg_set_pick(&set, 0, &(tg_sizes){1, 1, 1, 8}, &why_sink), -1);
    assert_says(&why, "TG0701 sizes.chunk: expected a multiple of ");
    assert_says(&why,
                "TG0733 sizes: expected some that one of the 3 programs of mlstm-sig for sm_80, dqk 16, dhv 16 takes, "
                "found B 1, NH 1, T 1, chunk 8");
    assert_int_equal(tg_set_pick(&set, 9, &(tg_sizes){1, 1, 1, 0}, NULL), -1);
    assert_int_equal(tg_set_pick(NULL, 0, NULL, NULL), -1);
    assert_int_equal(tg_set_branch(NULL, 80, 0, 0, NULL), -1);
}

static void change_set(tg_set *set, int what)
{
    switch (what) {
    case 0:
        set->programs[1].n_tensors--; /* less workspace is no matter */
        set->programs[1].kernels[0].n_args = 0;
        return;
    case 1:
        set->programs[1].tensors[SAMPLE_F].dtype = TG_BF16;
        return;
    case 2:
        strcpy(set->programs[2].scalars[0].name, "scala");
        return;
    case 3:
        set->programs[2].scalars[0].value = 1; /* other widths have another scale */
        return;
    case 4:
        set->programs[5].dqk = 48;
        return;
    case 5:
        set->branches[1].first = 2;
        return;
    case 6:
        set->branches[2].n_programs = 0;
        return;
    case 7:
        set->branches[0].points[1].program = 3;
        return;
    case 8:
        set->branches[0].points[1].tokens = 0;
        return;
    case 9:
        set->branches[0].picks[56][80] = 3;
        return;
    case 10:
        set->n_branches = 2;
        return;
    case 11:
        set->programs[6].dqk = 16;
        return;
    case 12:
        strcpy(set->programs[3].variant, "other");
        return;
    default:
        set->version++;
        return;
    }
}

static void every_wrong_field_of_a_set_is_named(void **state)
{
    (void)state;
    static const char *const expected[] = {
        NULL,
        "TG0734 set: programs[1] (tfla): expected tensor f as in the first, found f",
        "TG0721 scalars[0].name: expected scale, found scala",
        NULL,
        "TG0734 set: programs[5]: expected the architecture and widths of the first of its branch",
        "TG0734 set: branches[1]: expected its 1..16 programs to begin at 3 of 7, found 3 at 2",
        "TG0734 set: branches[2]: expected its 1..16 programs to begin at 6 of 7, found 0 at 6",
        "TG0734 set: branches[0].points[1]: expected a program below 3 and an origin of 0..2, found 3 and 1",
        "TG0734 set: branches[0].points[1]: expected sizes of 1..2147483647, found B 2, NH 2, T 0",
        "TG0734 set: branches[0].picks[56][80]: expected below 3, found 3",
        "TG0734 set: expected branches of all 7 programs, found 6",
        "TG0734 set: branches[2]: expected another architecture or widths than branches[1]",
        "TG0734 set: programs[3].variant: expected mlstm-sig, found other",
        "TG0722 set: expected version 8 of",
    };
    for (int i = 0; i < (int)(sizeof expected / sizeof *expected); i++) {
        LOG(log);
        tg_set set = sample_set("ptx", set_programs, set_branches);
        change_set(&set, i);
        const tg_status status = tg_set_verify(&set, &log_sink);
        assert_int_equal(status == TG_OK, expected[i] == NULL);
        if (expected[i])
            assert_says(&log, expected[i]);
    }
    assert_int_equal(tg_set_verify(NULL, NULL), TG_E_ARGUMENT);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_messages_arrive_whole),
        cmocka_unit_test(every_status_has_a_name),
        cmocka_unit_test(chunk_sizes_follow_the_sequence),
        cmocka_unit_test(packed_chunks_are_enough),
        cmocka_unit_test(a_decode_step_is_one_chunk),
        cmocka_unit_test(extents_follow_flags_and_kind),
        cmocka_unit_test(sizes_fit_the_kind_of_program),
        cmocka_unit_test(wrong_sizes_are_all_named),
        cmocka_unit_test(products_beyond_the_limits_are_refused),
        cmocka_unit_test(workspace_is_aligned_and_64_bit),
        cmocka_unit_test(calls_are_taken_in_pieces),
        cmocka_unit_test(places_are_shared),
        cmocka_unit_test(states_are_paired_by_a_final_0),
        cmocka_unit_test(slots_are_the_states_of_pools),
        cmocka_unit_test(readers_are_exact),
        cmocka_unit_test(every_wrong_field_is_named),
        cmocka_unit_test(boxes_may_have_any_legal_shape),
        cmocka_unit_test(programs_of_another_version_are_refused),
        cmocka_unit_test(steps_are_the_nearest),
        cmocka_unit_test(a_set_takes_the_nearest_program),
        cmocka_unit_test(a_set_says_what_there_is),
        cmocka_unit_test(every_wrong_field_of_a_set_is_named),
    };
    if (!usage_is(argc, argv, 0, 0, ""))
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
