/* program/generate_programs.c - generated C: images, kernels, programs, and the branches by which a launch takes one. */
#include "program/generate.h"
#include "program/arch.h"
#include "program/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- images: those that several kernels have, once ---- */

static bool is_same_image(const void *a, uint64_t n, const void *b, uint64_t m)
{
    return n == m && (a == b || (a && b && memcmp(a, b, n) == 0));
}

/* The number of the first kernel of the set, counted through all programs, with the PTX and the cubin of this one. */
static uint32_t image_of(const tg_set *set, const tg_kernel *k)
{
    uint32_t at = 0;
    for (uint32_t p = 0; p < set->n_programs; p++)
        for (uint32_t i = 0; i < set->programs[p].n_kernels; i++, at++) {
            const tg_kernel *other = &set->programs[p].kernels[i];
            if (other == k || (is_same_image(k->ptx, k->ptx_bytes, other->ptx, other->ptx_bytes) &&
                               is_same_image(k->cubin, k->cubin_bytes, other->cubin, other->cubin_bytes)))
                return at;
        }
    return at;
}

static void append_kernel(struct text *text, const tg_set *set, const tg_kernel *k, uint32_t first_map)
{
    static const char *const sizes[] = {"ONE", "BATCH", "HEADS", "TOKENS", "CHUNKS", "CHUNK", "FIRST"};
    static const char *const kinds[] = {"POINTER", "STRIDE", "SIZE", "SCALAR", "MAP"};
    const uint32_t image = image_of(set, k);
    gen_append(text, "    {\"%s\", ptx_%" PRIu32 ", ", k->name, image);
    gen_append(text, k->cubin ? "cubin_%" PRIu32 : "NULL", image);
    gen_append(text, ", %" PRIu32 ", %" PRIu32 ", %d, %d", k->threads, k->shared_bytes, k->cluster ? k->cluster : 1,
               k->overlap);
    gen_append(text, ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ",\n     {", k->n_grid, k->n_args, k->n_maps,
               first_map);
    for (uint32_t g = 0; g < k->n_grid; g++)
        gen_append(text, "%s{%s, %" PRIu32 ", %" PRIu32 "}", g ? ", " : "", sizes[k->grid[g].size], k->grid[g].div,
                   k->grid[g].mul);
    gen_append(text, "},\n     {");
    for (uint32_t a = 0; a < k->n_args; a++) {
        const tg_arg_desc *arg = &k->args[a];
        gen_append(text, "%s{%s, ", a == 0 ? "" : a % 5 ? ", " : ",\n      ", kinds[arg->kind]);
        if (arg->kind == TG_ARG_SIZE)
            gen_append(text, "%s, %d}", sizes[arg->index], arg->axis);
        else
            gen_append(text, "%d, %d}", arg->index, arg->axis);
    }
    gen_append(text, k->n_args ? "},\n     {" : "{0, 0, 0}},\n     {");
    for (uint32_t m = 0; m < k->n_maps; m++) {
        const tg_map_desc *map = &k->maps[m];
        gen_append(text, "%s{%d, %d, %d, %d, %d}", m ? ", " : "", map->tensor, map->swizzle, map->columns, map->rows,
                   map->spans);
    }
    gen_append(text, k->n_maps ? "}},\n" : "{0, 0, 0, 0, 0}}},\n");
}

void gen_add_kernels(struct keys *keys, const tg_set *set)
{
    enum { PLACES = 8 }; /* for the maps of one recipe that a module keeps; a power of two */
    struct text *text = gen_add_key(keys, "kernels");
    uint32_t n_maps = 0;
    for (uint32_t p = 0; p < set->n_programs; p++) {
        gen_append(text, "static const struct kernel kernels_%" PRIu32 "[] = {\n", p);
        for (uint32_t i = 0; i < set->programs[p].n_kernels; i++) {
            append_kernel(text, set, &set->programs[p].kernels[i], n_maps);
            n_maps += set->programs[p].kernels[i].n_maps;
        }
        gen_append(text, "};\n");
    }
    gen_append(gen_add_key(keys, "map_places"), "%d", PLACES);
    gen_append(gen_add_key(keys, "n_places"), "%" PRIu32, n_maps ? n_maps * PLACES : 1);
}

/* A string literal would be shorter, but C guarantees only 4095 characters of one. */
static void append_image(struct text *text, const char *kind, uint32_t i, const void *image, uint64_t n)
{
    const unsigned char *bytes = image;
    gen_append(text, "ALIGNED(16) static const unsigned char %s_%" PRIu32 "[] = {", kind, i);
    for (uint64_t at = 0; at < n; at++)
        gen_append(text, "%s%u,", at % 24 ? "" : "\n    ", bytes[at]);
    gen_append(text, "\n};\n\n");
}

void gen_add_images(struct keys *keys, const tg_set *set)
{
    struct text *text = gen_add_key(keys, "images");
    uint32_t at = 0;
    for (uint32_t p = 0; p < set->n_programs; p++)
        for (uint32_t i = 0; i < set->programs[p].n_kernels; i++, at++) {
            const tg_kernel *k = &set->programs[p].kernels[i];
            if (image_of(set, k) != at)
                continue;
            append_image(text, "ptx", at, k->ptx, k->ptx_bytes + 1); /* with its NUL */
            if (k->cubin)
                append_image(text, "cubin", at, k->cubin, k->cubin_bytes);
        }
}

/* ---- programs and branches ---- */

/* What stands in comments and strings must not end one or, by a '@', look like a key. */
void gen_append_harmless(struct text *text, const char *from)
{
    for (; *from; from++)
        gen_append(text, "%c", strchr("*@\\\"", *from) ? '.' : *from);
}

uint32_t gen_chunk_most(const tg_program *program)
{
    return program->chunk_most ? program->chunk_most : INT32_MAX;
}

void gen_add_programs(struct keys *keys, const tg_set *set)
{
    struct text *text = gen_add_key(keys, "programs");
    uint32_t n_kernels = 0;
    for (uint32_t i = 0; i < set->n_programs; i++) {
        const tg_program *p = &set->programs[i];
        gen_append(text, "    {\"");
        gen_append_harmless(text, p->schedule);
        gen_append(text,
                   "\", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32
                   ", %" PRIu32 ", tensors_%" PRIu32 ", kernels_%" PRIu32 "},\n",
                   p->chunk_multiple, p->chunk_default, gen_chunk_most(p), p->max_tokens, p->pieces > 1 ? p->pieces : 1,
                   p->n_tensors, p->n_kernels, n_kernels, i, i);
        n_kernels += p->n_kernels;
    }
    gen_append(gen_add_key(keys, "n_programs"), "%" PRIu32, set->n_programs);
    gen_append(gen_add_key(keys, "n_kernels"), "%" PRIu32, n_kernels);
}

static int64_t tokens_of(const tg_program *program, const tg_point_of_set *at)
{
    return program->packed ? (at->tokens - 1) / at->batch + 1 : at->tokens;
}

/* Of a branch with a choice. */
static void append_picks(struct text *text, const tg_set *set, uint32_t i)
{
    const tg_branch *b = &set->branches[i];
    gen_append(text, "static const struct point points_%" PRIu32 "[] = {\n", i);
    for (uint32_t k = 0; k < b->n_points; k++) {
        const tg_point_of_set *at = &b->points[k];
        gen_append(text, "    {%" PRId64 ", %" PRId64 ", %d}, /* B %" PRId64 ", NH %" PRId64 ", T %" PRId64 " */\n",
                   tg_pick_log(at->batch * at->heads), tg_pick_log(tokens_of(&set->programs[b->first], at)),
                   at->program, at->batch, at->heads, at->tokens);
    }
    gen_append(text, b->n_points ? "};\n" : "    {0, 0, 0},\n};\n");
    gen_append(text, "static const unsigned char picks_%" PRIu32 "[PICK_HEADS][PICK_TOKENS] = {\n", i);
    for (uint32_t h = 0; h < TG_PICK_HEADS; h++) {
        gen_append(text, "    {");
        for (uint32_t t = 0; t < TG_PICK_TOKENS; t++)
            gen_append(text, "%s%d", t ? ", " : "", b->picks[h][t]);
        gen_append(text, "},\n");
    }
    gen_append(text, "};\n");
}

void gen_add_branches(struct keys *keys, const tg_set *set)
{
    struct text *picks = gen_add_key(keys, "picks"), *text = gen_add_key(keys, "branches");
    for (uint32_t i = 0; i < set->n_branches; i++) {
        const tg_branch *b = &set->branches[i];
        const tg_program *p = &set->programs[b->first];
        gen_append(text, "    {%d, %d, %d, %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", ",
                   arch_number(p) / 10, arch_number(p) % 10, p->arch_exact, p->dqk, p->dhv, b->first, b->n_programs,
                   b->n_programs > 1 ? b->n_points : 0);
        if (b->n_programs > 1) {
            append_picks(picks, set, i);
            gen_append(text, "points_%" PRIu32 ", picks_%" PRIu32 "},\n", i, i);
        } else {
            gen_append(text, "NULL, NULL},\n");
        }
    }
    gen_append(gen_add_key(keys, "n_branches"), "%" PRIu32, set->n_branches);
    gen_append(gen_add_key(keys, "pick_heads"), "%d", TG_PICK_HEADS);
    gen_append(gen_add_key(keys, "pick_tokens"), "%d", TG_PICK_TOKENS);
}
