/* program/verify_set.c - the rules that a set keeps: its programs are alike in what a caller sees, its branches cover them,
 * its tables lead to them. */
#include "program/fail.h"
#include "program/set.h"
#include "program/tensor.h"
#include "program/verify.h"

#include <inttypes.h>
#include <string.h>

#define REQUIRE(condition, ...) REQUIRE_CODE("TG0734", condition, __VA_ARGS__)

static bool is_same_tensor(const tg_tensor_info *a, const tg_tensor_info *b)
{
    return strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->flags == b->flags && a->segment == b->segment &&
           memcmp(a->axes, b->axes, sizeof a->axes) == 0;
}

static uint32_t count_signature(const tg_program *program)
{
    uint32_t n = 0;
    while (n < program->n_tensors && !is_workspace(&program->tensors[n]))
        n++;
    return n;
}

/* What a caller sees is the same whichever is taken. */
static tg_status verify_alike(const tg_set *set, uint32_t i, const tg_sink *sink)
{
    const tg_program *p = &set->programs[i], *first = &set->programs[0];
    const uint32_t n = count_signature(p);
    REQUIRE(strcmp(p->variant, first->variant) == 0, "set: programs[%" PRIu32 "].variant: expected %s, found %s", i,
            first->variant, p->variant);
    REQUIRE(p->io_dtype == first->io_dtype && p->packed == first->packed && p->pooled == first->pooled &&
                p->group == first->group,
            "set: programs[%" PRIu32 "] (%s): expected the types, packing, pool and group of the first", i,
            p->schedule);
    REQUIRE(n == count_signature(first),
            "set: programs[%" PRIu32 "] (%s): expected %" PRIu32 " tensors of the signature, found %" PRIu32, i,
            p->schedule, count_signature(first), n);
    for (uint32_t t = 0; t < n; t++)
        REQUIRE(is_same_tensor(&p->tensors[t], &first->tensors[t]),
                "set: programs[%" PRIu32 "] (%s): expected tensor %s as in the first, found %s", i, p->schedule,
                first->tensors[t].name, p->tensors[t].name);
    REQUIRE(p->n_scalars == first->n_scalars,
            "set: programs[%" PRIu32 "] (%s): expected %" PRIu32 " scalars, found %" PRIu32, i, p->schedule,
            first->n_scalars, p->n_scalars);
    for (uint32_t s = 0; s < p->n_scalars; s++)
        REQUIRE(strcmp(p->scalars[s].name, first->scalars[s].name) == 0,
                "set: programs[%" PRIu32 "] (%s): expected scalar %s as in the first, found %s", i, p->schedule,
                first->scalars[s].name, p->scalars[s].name);
    return TG_OK;
}

static bool is_same_kind(const tg_program *a, const tg_program *b)
{
    return a->dqk == b->dqk && a->dhv == b->dhv && strcmp(a->arch, b->arch) == 0 && a->arch_exact == b->arch_exact;
}

static tg_status verify_points(const tg_set *set, uint32_t i, const tg_sink *sink)
{
    const tg_branch *b = &set->branches[i];
    REQUIRE(b->n_points <= TG_MAX_POINTS, "set: branches[%" PRIu32 "].n_points: expected at most %d, found %" PRIu32, i,
            TG_MAX_POINTS, b->n_points);
    for (uint32_t k = 0; k < b->n_points; k++) {
        const tg_point_of_set *at = &b->points[k];
        REQUIRE(at->batch >= 1 && at->heads >= 1 && at->tokens >= 1 && at->batch <= INT32_MAX &&
                    at->heads <= INT32_MAX && at->tokens <= INT32_MAX,
                "set: branches[%" PRIu32 "].points[%" PRIu32 "]: expected sizes of 1..%d, found B %" PRId64
                ", NH %" PRId64 ", T %" PRId64,
                i, k, INT32_MAX, at->batch, at->heads, at->tokens);
        REQUIRE(at->program < b->n_programs && at->origin <= TG_BY_NAME,
                "set: branches[%" PRIu32 "].points[%" PRIu32 "]: expected a program below %" PRIu32
                " and an origin of 0..%d, found %d and %d",
                i, k, b->n_programs, TG_BY_NAME, at->program, at->origin);
    }
    for (uint32_t h = 0; h < TG_PICK_HEADS; h++)
        for (uint32_t t = 0; t < TG_PICK_TOKENS; t++)
            REQUIRE(b->picks[h][t] < b->n_programs,
                    "set: branches[%" PRIu32 "].picks[%" PRIu32 "][%" PRIu32 "]: expected below %" PRIu32 ", found %d",
                    i, h, t, b->n_programs, b->picks[h][t]);
    return TG_OK;
}

static tg_status verify_branch(const tg_set *set, uint32_t i, uint32_t first, const tg_sink *sink)
{
    const tg_branch *b = &set->branches[i];
    REQUIRE(b->first == first && b->n_programs >= 1 && b->n_programs <= TG_MAX_BRANCH_PROGRAMS &&
                b->n_programs <= set->n_programs - first,
            "set: branches[%" PRIu32 "]: expected its 1..%d programs to begin at %" PRIu32 " of %" PRIu32
            ", found %" PRIu32 " at %" PRIu32,
            i, TG_MAX_BRANCH_PROGRAMS, first, set->n_programs, b->n_programs, b->first);
    for (uint32_t p = 1; p < b->n_programs; p++)
        REQUIRE(is_same_kind(&set->programs[first], &set->programs[first + p]),
                "set: programs[%" PRIu32 "]: expected the architecture and widths of the first of its branch",
                first + p);
    for (uint32_t k = 0; k < i; k++)
        REQUIRE(!is_same_kind(&set->programs[first], &set->programs[set->branches[k].first]),
                "set: branches[%" PRIu32 "]: expected another architecture or widths than branches[%" PRIu32 "]", i, k);
    return verify_points(set, i, sink);
}

tg_status tg_set_verify(const tg_set *set, const tg_sink *sink)
{
    if (!set)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0734", NULL, "set: expected a set, found NULL");
    tg_status status = verify_header("set", set->struct_size, set->version, sizeof *set, sink);
    if (status != TG_OK)
        return status;
    REQUIRE(set->programs && set->n_programs >= 1 && set->n_programs <= TG_MAX_SET_PROGRAMS && set->branches &&
                set->n_branches >= 1 && set->n_branches <= TG_MAX_BRANCHES,
            "set: expected 1..%d programs and 1..%d branches, found %" PRIu32 " and %" PRIu32, TG_MAX_SET_PROGRAMS,
            TG_MAX_BRANCHES, set->n_programs, set->n_branches);
    uint32_t first = 0;
    for (uint32_t i = 0; i < set->n_programs && status == TG_OK; i++)
        status = tg_program_verify(&set->programs[i], sink);
    for (uint32_t i = 1; i < set->n_programs && status == TG_OK; i++)
        status = verify_alike(set, i, sink);
    for (uint32_t i = 0; i < set->n_branches && status == TG_OK; first += set->branches[i++].n_programs)
        status = verify_branch(set, i, first, sink);
    if (status == TG_OK && first != set->n_programs)
        status = tg_fail(sink, TG_E_FORMAT, "TG0734", NULL,
                         "set: expected branches of all %" PRIu32 " programs, found %" PRIu32, set->n_programs, first);
    return status;
}
