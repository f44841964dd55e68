/* tests/compile/judge.c - a compilation and what is expected of it. */
#include "assembled.h"
#include "compile.h"

#include "dsl/slice.h"
#include "tests/made.h"

#include <stdlib.h>
#include <string.h>

const tg_dtype types[N_TYPES] = {TG_BF16, TG_F16, TG_F32};

static struct text messages;

static void emit(void *user, const tg_diag *diag)
{
    const tg_writer w = text_writer(user);
    tg_printf(&w, "%s %s\n", diag->code ? diag->code : "-", diag->message);
}

const tg_sink log_sink = {emit, &messages};

const char *log_text(void)
{
    return text_of(&messages);
}

void log_clear(void)
{
    text_free(&messages);
}

bool schedule_of(const tg_variant *variant, const char *text, tg_schedule *schedule)
{
    return tg_variant_schedule_named(variant, text, schedule, &log_sink) == TG_OK;
}

bool has_inverse(const tg_algorithm *algorithm)
{
    bool any = false;
    for (uint32_t i = 0; i < algorithm->n_body; i++)
        any |= algorithm->body[i].op == TG_STMT_SOLVE;
    return any;
}

/* What ptxas may spill, in bytes with the stack, of algorithms and schedules that begin so (README, Limits). Four heads in
 * one thread block hardly leave registers, the least to chunks that decay much. */
static const struct {
    const char *algorithm, *schedule;
    uint32_t bytes;
} spilling[] = {
    {"dfw-backward", "", 48}, /* two decays in each product */
    {"kda", "", 132},         /* its walk on mma.sync for sm_100a */
    {"", "walk-parts-heads", 880},
    {"", "walk-parts-pairs", 1960},
    {"delta-net", "walk-keep", 24}, /* its walk where dqk is beyond 192 */
    {"gated-delta", "walk-keep", 24},
    {"mlstm-exp-backward", "walk-cluster",
     28}, /* dQ, and the next: sums of the state that wait for a step; 28 at 120, 512 */
    {"mlstm-exp-backward", "walk-parts-deep", 24},
    {"gated-retention-backward", "walk-parts", 16}, /* dQ, packed, with shared heads */
    {"nla-backward", "tfla-fp32", 40},              /* nstate on sm_89 */
    {"nla-backward", "walk-parts", 176},            /* dQ, whose part of dhv is 256 wide */
    {"nla-backward", "walk-deep", 20},              /* dK at 256, 256 */
    {"rwkv6-backward", "walk-cluster", 72},         /* keys at 128, 384 */
    {"gated-delta", "walk-shared",
     112}, /* its walk where dqk is beyond 384; of gradients dV, which makes two outputs */
    {"delta-net-backward", "walk-parts-shared", 240},
    {"delta-net-backward", "walk-parts-split", 20}, /* dQ at 256, 512 */
    {"mamba2-backward", "walk-cluster", 16},        /* dK at 128, 512 */
    {"mlstm-sig", "walk-wide", 24}, /* at dqk 256, which is faster so than without (bench/NOTES.md); the next, too */
    {"mamba2", "walk-wide", 28},
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Walks of packed sequences where 64 does not divide dhv have guards beside all that they had: 20 bytes of
 * lightning-backward. */
static uint32_t most_spilled(const tg_schedule *schedule, const tg_shape_class *shape)
{
    if (has_inverse(schedule->algorithm) && begins(schedule->name, "portable"))
        return UINT32_MAX;
    for (size_t i = 0; i < sizeof spilling / sizeof *spilling; i++)
        if (begins(schedule->algorithm->name, spilling[i].algorithm) && begins(schedule->name, spilling[i].schedule))
            return spilling[i].bytes;
    bool walks = false;
    for (uint32_t i = 0; i < schedule->n_rows; i++)
        walks |= schedule->rows[i].mma == TG_MMA_WGMMA;
    return walks && shape->packed && shape->dhv % 64 ? 20 : 0;
}

/* ... and T of the delta rule alone: what it knows of its chunk from begin to end, for the store. */
static uint32_t most_of_inverse(const tg_schedule *schedule, const tg_shape_class *shape)
{
    return has_inverse(schedule->algorithm) && shape->dqk > 128 ? 64 : 0;
}

static bool is_inverse(const tg_kernel *kernel)
{
    const size_t n = strlen(kernel->name);
    return n > 2 && strcmp(kernel->name + n - 2, "_T") == 0;
}

/* What may begin while kernels ahead end touches no memory of theirs before it has waited for them; the emulator sees to that in what it
 * runs, on sm_90a. */
static bool waits_first(const char *ptx)
{
    static const char *const accesses[] = {"ld.global", "st.global", "cp.async", "atom.", "red."};
    const char *const wait = strstr(ptx, "griddepcontrol.wait;");
    bool first = wait;
    for (size_t i = 0; i < sizeof accesses / sizeof *accesses; i++) {
        const char *access = strstr(ptx, accesses[i]);
        first &= !access || access > wait;
    }
    return first;
}

static void check_kernel(const tg_kernel *kernel, const tg_target *target, const char *ptxas, uint32_t spilled)
{
    char wanted[40];
    snprintf(wanted, sizeof wanted, ".target %s", target->arch);
    const bool is_code = strcmp(kernel->ptx, made_nothing) != 0;
    tap_expect(strstr(kernel->ptx, wanted) || !is_code, "%s: no line %s", kernel->name, wanted);
    tap_expect(kernel->overlap == (target->cc >= 90) && (!is_code || !kernel->overlap || waits_first(kernel->ptx)),
               "%s: overlap is %d, or it does not wait first", kernel->name, kernel->overlap);
    tap_expect(kernel->spill_bytes <= spilled, "%s spills %u bytes", kernel->name, kernel->spill_bytes);
    tap_expect(!ptxas || kernel->registers > 0, "%s: no facts of ptxas", kernel->name);
    tap_expect(kernel->shared_bytes <= target->shared_optin, "%s: shared memory", kernel->name);
}

/* Nothing was said but that something spills? */
static bool says_only_spills(void)
{
    for (const char *code = log_text(); (code = strstr(code, "TG0")); code++)
        if (strncmp(code, "TG0592", 6) != 0)
            return false;
    return !strstr(log_text(), "C75");
}

/* Where nothing is promised about spills, ptxas is asked only whether it takes the code: of wide states that is not worth
 * its time, half a minute. */
static bool is_assembled(uint32_t spilled, const tg_shape_class *shape)
{
    return spilled != UINT32_MAX || shape->dqk <= 32;
}

void compile_with(const tg_variant *variant, const tg_schedule *schedule, const tg_target *target,
                  const tg_shape_class *shape, const char *ptxas)
{
    const uint32_t spilled = most_spilled(schedule, shape), of_inverse = most_of_inverse(schedule, shape),
                   of_any = spilled > of_inverse ? spilled : of_inverse;
    if (!is_assembled(spilled, shape))
        ptxas = NULL;
    const tg_compile_options how = {.ptxas = ptxas, .strict = !of_any};
    tg_program *program = NULL;
    assembled_ask(ptxas ? ASSEMBLED_CUBIN : ASSEMBLED_CODE);
    tg_status status = tg_compile(variant, schedule, target, shape, &how, &program, &log_sink);
    assembled_ask(ASSEMBLED_NOTHING);
    tap_expect(status == TG_OK && (of_any ? says_only_spills() : !*log_text()), "dqk %u dhv %u: %s with %s: %s",
               shape->dqk, shape->dhv, tg_status_name(status), schedule->name, log_text());
    for (uint32_t k = 0; program && k < program->n_kernels; k++)
        check_kernel(&program->kernels[k], target, ptxas, is_inverse(&program->kernels[k]) ? of_any : spilled);
    tg_program_free(program);
}
