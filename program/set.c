/* program/set.c - which program of a set a call takes; sets made and freed. */
#include "program/set.h"
#include "program/arch.h"
#include "program/fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- steps of a table ---- */

enum { FRACTION = 16 }; /* bits behind the point of a logarithm */

/* log2 by its integer part and the mantissa: a straight line from power to power, at most 0.09 too small. Generated C
 * has the same function. */
int64_t tg_pick_log(int64_t value)
{
    const int64_t most = INT64_C(1) << 40;
    uint32_t octave = 0;
    if (value < 1)
        return 0;
    value = value < most ? value : most;
    for (uint32_t bits = 32; bits; bits /= 2)
        octave += value >> (octave + bits) ? bits : 0;
    return ((int64_t)octave << FRACTION) + ((value << FRACTION) >> octave) - (1 << FRACTION);
}

uint32_t tg_pick_step(int64_t value, uint32_t n)
{
    /* 2^(1/8), 2^(3/8) and so on, where one step is as near as the next. */
    static const int64_t middles[TG_PICK_STEPS] = {5932, 19454, 35534, 54657};
    const int64_t log = tg_pick_log(value), fraction = log & ((1 << FRACTION) - 1);
    uint32_t step = TG_PICK_STEPS * (uint32_t)(log >> FRACTION);
    for (uint32_t i = 0; i < TG_PICK_STEPS; i++)
        step += fraction >= middles[i];
    return step < n ? step : n - 1;
}

int64_t tg_pick_size(uint32_t step)
{
    static const int64_t roots[TG_PICK_STEPS] = {65536, 77936, 92682, 110218}; /* of 2, 16 bits behind the point */
    const int64_t octave = INT64_C(1) << step / TG_PICK_STEPS;
    return (octave * roots[step % TG_PICK_STEPS] + (1 << (FRACTION - 1))) >> FRACTION;
}

/* ---- choice ---- */

static int64_t heads_of(int64_t batch, int64_t heads)
{
    return batch < INT32_MAX && heads < INT32_MAX ? batch * heads : INT64_MAX;
}

static int64_t tokens_of(const tg_program *program, int64_t batch, int64_t tokens)
{
    return program->packed && batch > 1 ? (tokens - 1) / batch + 1 : tokens;
}

/* The point that is nearest, among those that are near; NULL: none is. */
static const tg_point_of_set *nearest(const tg_program *program, const tg_branch *b, int64_t heads, int64_t tokens)
{
    const int64_t near = 1 << (FRACTION - 1);
    const tg_point_of_set *best = NULL;
    int64_t least = INT64_MAX;
    heads = tg_pick_log(heads);
    tokens = tg_pick_log(tokens);
    for (uint32_t i = 0; i < b->n_points; i++) {
        const tg_point_of_set *at = &b->points[i];
        const int64_t by_heads = llabs(tg_pick_log(heads_of(at->batch, at->heads)) - heads);
        const int64_t by_tokens = llabs(tg_pick_log(tokens_of(program, at->batch, at->tokens)) - tokens);
        if (by_heads > near || by_tokens > near || by_heads + by_tokens >= least)
            continue;
        best = at;
        least = by_heads + by_tokens;
    }
    return best;
}

static uint32_t look_up(const tg_program *program, const tg_branch *b, const tg_sizes *sizes)
{
    const int64_t heads = heads_of(sizes->batch, sizes->heads);
    const int64_t tokens = tokens_of(program, sizes->batch, sizes->tokens);
    const tg_point_of_set *point = nearest(program, b, heads, tokens);
    return point ? point->program : b->picks[tg_pick_step(heads, TG_PICK_HEADS)][tg_pick_step(tokens, TG_PICK_TOKENS)];
}

int tg_set_pick(const tg_set *set, uint32_t branch, const tg_sizes *sizes, const tg_sink *sink)
{
    if (!set || !sizes || branch >= set->n_branches)
        return tg_report(sink, TG_ERROR, "TG0733", NULL, 0, NULL,
                         "tg_set_pick: expected a set, one of its branches and sizes, found %s",
                         !set     ? "no set"
                         : !sizes ? "no sizes"
                                  : "a branch that it lacks"),
               -1;
    const tg_branch *b = &set->branches[branch];
    const tg_program *const programs = &set->programs[b->first];
    const uint32_t first = look_up(programs, b, sizes);
    if (tg_sizes_check(&programs[first], sizes, NULL) == TG_OK)
        return (int)(b->first + first);
    for (uint32_t i = 0; i < b->n_programs; i++)
        if (i != first && tg_sizes_check(&programs[i], sizes, NULL) == TG_OK)
            return (int)(b->first + i);
    (void)tg_sizes_check(&programs[first], sizes, sink);
    if (b->n_programs > 1)
        tg_report(sink, TG_ERROR, "TG0733", NULL, 0, "compile it with --shape of these sizes",
                  "sizes: expected some that one of the %" PRIu32 " programs of %s for %s, dqk %" PRIu32
                  ", dhv %" PRIu32 " takes, found B %" PRId64 ", NH %" PRId64 ", T %" PRId64 ", chunk %" PRId64,
                  b->n_programs, programs->variant, programs->arch, programs->dqk, programs->dhv, sizes->batch,
                  sizes->heads, sizes->tokens, sizes->chunk);
    return -1;
}

/* 0 stands for the only widths of the set. */
static bool has_widths(const tg_set *set, const tg_program *program, uint32_t dqk, uint32_t dhv)
{
    bool ok = true;
    for (uint32_t i = 0; i < set->n_branches; i++) {
        const tg_program *other = &set->programs[set->branches[i].first];
        ok &= (dqk || other->dqk == program->dqk) && (dhv || other->dhv == program->dhv);
    }
    return ok && (!dqk || dqk == program->dqk) && (!dhv || dhv == program->dhv);
}

static void say_branches(const tg_set *set, int cc, uint32_t dqk, uint32_t dhv, const tg_sink *sink)
{
    char text[TG_MAX_BRANCHES * 48];
    size_t n = 0;
    for (uint32_t i = 0; i < set->n_branches && n < sizeof text; i++) {
        const tg_program *p = &set->programs[set->branches[i].first];
        n += (size_t)snprintf(text + n, sizeof text - n, "%sdqk %" PRIu32 " dhv %" PRIu32 " on %s%s", i ? ", " : "",
                              p->dqk, p->dhv, p->arch, p->arch_exact ? "" : " or newer");
    }
    tg_report(sink, TG_ERROR, "TG0732", NULL, 0,
              "compile it for that too: --arch A,B and a --shape for each pair of widths",
              "set of %s: expected one of %s, found dqk %" PRIu32 " dhv %" PRIu32 " on sm_%d", set->programs->variant,
              text, dqk, dhv, cc);
}

int tg_set_branch(const tg_set *set, int cc, uint32_t dqk, uint32_t dhv, const tg_sink *sink)
{
    int best = -1;
    if (!set)
        return tg_report(sink, TG_ERROR, "TG0732", NULL, 0, NULL, "tg_set_branch: expected a set, found NULL"), -1;
    for (uint32_t i = 0; i < set->n_branches; i++) {
        const tg_program *p = &set->programs[set->branches[i].first];
        if (has_widths(set, p, dqk, dhv) && runs_on(p, cc) &&
            (best < 0 || arch_number(p) > arch_number(&set->programs[set->branches[best].first])))
            best = (int)i;
    }
    if (best < 0)
        say_branches(set, cc, dqk, dhv, sink);
    return best;
}

/* ---- made and freed ---- */

tg_set *tg_set_new(uint32_t n_programs, uint32_t n_branches)
{
    tg_set *set = calloc(1, sizeof *set);
    if (!set)
        return NULL;
    set->struct_size = sizeof *set;
    set->version = TG_PROGRAM_VERSION;
    set->n_programs = n_programs;
    set->n_branches = n_branches;
    set->programs = calloc(n_programs, sizeof *set->programs);
    set->branches = calloc(n_branches, sizeof *set->branches);
    for (uint32_t i = 0; set->programs && i < n_programs; i++) {
        set->programs[i].struct_size = sizeof *set->programs;
        set->programs[i].version = TG_PROGRAM_VERSION;
    }
    if (set->programs && set->branches)
        return set;
    tg_set_free(set);
    return NULL;
}

void tg_set_take(tg_set *set, uint32_t i, tg_program *program)
{
    set->programs[i] = *program;
    free(program); /* its storage is the set's now */
}

tg_status tg_set_of(tg_program *program, tg_set **set, const tg_sink *sink)
{
    if (!program || !set)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0734", NULL, "tg_set_of: %s is NULL", program ? "set" : "program");
    *set = tg_set_new(1, 1);
    if (!*set) {
        tg_program_free(program);
        return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "set: no memory for a program");
    }
    tg_set_take(*set, 0, program);
    (*set)->branches[0].n_programs = 1;
    return TG_OK;
}

void tg_set_free(tg_set *set)
{
    if (!set)
        return;
    for (uint32_t i = 0; set->programs && i < set->n_programs; i++)
        free(set->programs[i].storage);
    free(set->programs);
    free(set->branches);
    free(set->storage);
    free(set);
}
