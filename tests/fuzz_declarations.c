/* fuzz_declarations.c - random declarations: what is refused has a reason, what is accepted compiles, runs on the emulator
 * or a GPU and computes what its statements say.
 *
 *     fuzz_declarations [--device emu|N] [--seconds N] [--seed FIRST] [--count N] [--each N] [--show SEED]
 *
 * A GPU must run sm_90a, for which half of them are.
 * Of each kind of declaration so many must be accepted (--each), those that are changed from built-in ones not counted but for
 * clusters of heads, which no random algorithm has.
 * Each declaration comes from one number, so that number reproduces it; --show prints it and what becomes of it. They are
 * tried in a process of their own: what crashes or hangs it is told like the rest, and the next ones follow. */
#include "compiler/plan.h"
#include "declarations/declare.h"
#include "tests/made.h"
#include "tests/usage.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_CODES = 96, MOST_CPU_SECONDS = 120, MOST_SHRUNK = 12 };

/* What both processes see. */
struct progress_of_all {
    uint64_t seed, end; /* the next to be tried, and where to stop */
    double deadline;
    bool is_trying;
    bool is_done; /* a schedule of the last algorithm was accepted: on to the next algorithm */
    uint64_t n_tried, n[WRONG + 1];
    uint64_t drawn[N_KINDS], accepted[N_KINDS];
    uint64_t n_findings;
    struct {
        char code[8];
        uint64_t n;
    } codes[MOST_CODES];
};

static const char *const outcomes[] = {
    "refused", "not judged", "right", "refused without a reason", "not lowered", "not run", "wrong",
};

static void count_code(struct progress_of_all *all, const char *code)
{
    int i = 0;
    while (i < MOST_CODES - 1 && all->codes[i].n && strcmp(all->codes[i].code, code) != 0)
        i++;
    memcpy(all->codes[i].code, code, sizeof all->codes[i].code);
    all->codes[i].n++;
}

static void count_kinds(struct progress_of_all *all, const struct declaration *d, bool is_accepted)
{
    for (int kind = 0; kind < N_KINDS; kind++)
        if ((!d->is_mutant || kind == KIND_CLUSTER || kind == KIND_ENDS) && is_of_kind(d, (enum kind)kind)) {
            all->drawn[kind]++;
            all->accepted[kind] += is_accepted;
        }
}

static const char *device = "emu";

static bool open_device(struct context *context)
{
    context_init(context);
    context->options.device = device;
    context->options.arch =
        strcmp(device, "emu") == 0 ? "sm_90a" : NULL; /* which runs what is made for older ones too */
    context->options.no_cache = true;
    if (!machine_open(context))
        return false;
    if (strcmp(context->machine.target->arch, "sm_90a") == 0)
        return true;
    fprintf(stderr, "fuzz_declarations: --device: expected a GPU that runs sm_90a, found %s, which runs %s\n",
            context->machine.device.name, context->machine.target->arch);
    return false;
}

/* Smaller calls that go wrong in the same way, as long as there are any. */
static void shrink(struct context *context, uint64_t seed, struct declaration *d, struct result *result)
{
    const enum outcome outcome = result->outcome;
    for (int i = 0; i < MOST_SHRUNK; i++) {
        const struct declaration before = *d;
        tg_shape *s = &d->shape;
        struct result smaller;
        if (i == 0)
            s->batch = 1, s->packed = false;
        else if (i == 1)
            s->heads = s->group = 1;
        else if (i == 2)
            d->without_optional = true;
        else
            s->tokens -= (s->tokens + 1) / 2;
        d->variant.algorithm = d->schedule.algorithm = &d->algorithm;
        if (s->tokens > 0)
            judge_declaration(context, seed, d, &smaller);
        if (s->tokens > 0 && smaller.outcome == outcome)
            *result = smaller;
        else
            *d = before;
    }
}

/* Behind what was found: the command that finds it again, with the same kernels by LLVM. */
static void tell_command(uint64_t seed)
{
    const char *of_llvm = getenv("TEGULA_OF_LLVM");
    printf(": %s%s%sfuzz_declarations --show %llu\n", of_llvm ? "TEGULA_OF_LLVM=" : "", of_llvm ? of_llvm : "",
           of_llvm ? " " : "", (unsigned long long)seed);
}

static void tell(uint64_t seed, const struct declaration *d, const struct result *result)
{
    printf("FOUND %s", outcomes[result->outcome]);
    tell_command(seed);
    printf("  %s %s\n", result->code, result->text);
    print_declaration(d);
    fflush(stdout);
}

static void limit_time(void)
{
    const struct itimerval limit = {.it_value = {.tv_sec = MOST_CPU_SECONDS}};
    setitimer(ITIMER_PROF, &limit, NULL); /* kills the process */
}

/* A kernel that LLVM made because it had to, which is slow, and nobody would notice. */
static void count_unknown(struct progress_of_all *all, uint64_t seed)
{
    char unknown[MADE_UNKNOWN];
    if (!made_unknown(unknown))
        return;
    printf("FOUND tests/plain does not know %s", unknown);
    tell_command(seed);
    all->n_findings++;
}

/* One declaration; false when it went wrong, and with it what is left of the device. */
static bool try_one(struct context *context, struct progress_of_all *all, uint64_t seed)
{
    struct declaration d;
    struct result result;
    declare(seed, &d);
    judge_declaration(context, seed, &d, &result);
    count_unknown(all, seed);
    all->n[result.outcome]++;
    all->n_tried++;
    all->is_done = result.outcome != REFUSED && result.outcome != SILENT;
    count_kinds(all, &d, all->is_done);
    if (result.outcome == REFUSED)
        count_code(all, result.code);
    if (result.outcome < SILENT)
        return true;
    all->n_findings++;
    if (result.outcome == WRONG) /* the device is as it was */
        shrink(context, seed, &d, &result);
    tell(seed, &d, &result);
    return false;
}

static uint64_t next_seed(const struct progress_of_all *all)
{
    return all->is_done ? (all->seed / SCHEDULES_OF_EACH + 1) * SCHEDULES_OF_EACH : all->seed + 1;
}

static int try_until_found(struct progress_of_all *all)
{
    struct context context;
    if (!open_device(&context))
        return 2;
    while (all->seed < all->end && now() < all->deadline) {
        limit_time();
        all->is_trying = true;
        const bool ok = try_one(&context, all, all->seed);
        all->is_trying = false;
        all->seed = next_seed(all);
        if (!ok)
            break;
    }
    return 0;
}

static void tell_crash(struct progress_of_all *all, int status)
{
    struct declaration d;
    declare(all->seed, &d);
    printf("FOUND %s", WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF ? "no end" : "a crash");
    tell_command(all->seed);
    print_declaration(&d);
    fflush(stdout);
    all->n_findings++;
    all->seed++;
    all->is_trying = false;
}

static int try_all(struct progress_of_all *all)
{
    while (all->seed < all->end && now() < all->deadline) {
        int status = 0;
        fflush(stdout);
        const pid_t child = fork();
        if (child < 0)
            return 2;
        if (child == 0) {
            const int code = try_until_found(all);
            fflush(stdout);
            _exit(code);
        }
        if (waitpid(child, &status, 0) != child || (WIFEXITED(status) && WEXITSTATUS(status) == 2))
            return 2;
        if (all->is_trying)
            tell_crash(all, status);
    }
    return 0;
}

static void tell_counts(const struct progress_of_all *all, uint64_t first)
{
    printf("# %llu declarations, seeds %llu to %llu:", (unsigned long long)all->n_tried, (unsigned long long)first,
           (unsigned long long)all->seed - 1);
    for (int i = 0; i <= WRONG; i++)
        printf(" %llu %s%s", (unsigned long long)all->n[i], outcomes[i], i < WRONG ? "," : "\n");
    printf("# refused by");
    for (int i = 0; i < MOST_CODES && all->codes[i].n; i++)
        printf(" %s %llu", all->codes[i].code, (unsigned long long)all->codes[i].n);
    printf("\n# accepted of those drawn:");
    for (int kind = 0; kind < N_KINDS; kind++)
        printf(" %s %llu of %llu%s", kind_names[kind], (unsigned long long)all->accepted[kind],
               (unsigned long long)all->drawn[kind], kind < N_KINDS - 1 ? "," : "\n");
}

static uint64_t fewest(const struct progress_of_all *all)
{
    uint64_t n = UINT64_MAX;
    for (int kind = 0; kind < N_KINDS; kind++)
        n = all->accepted[kind] < n ? all->accepted[kind] : n;
    return n;
}

/* Before anything is lowered, which may crash. */
static void print_plans(const struct declaration *d)
{
    const tg_shape_class class = tg_shape_class_of(&d->shape, d->io);
    const tg_writer writer = file_writer(stdout);
    struct tg_slices slices;
    if (tg_schedule_check(&d->schedule, &silent_sink) != TG_OK ||
        tg_plan_check(&d->schedule, d->target, &class, &silent_sink) != TG_OK)
        return;
    tg_schedule_slice(&d->schedule, TG_MAX_ROWS, &slices);
    for (uint32_t r = 0; r < d->schedule.n_rows; r++) {
        static struct plan plan;
        if (plan_build(&plan, &d->schedule, &slices, r, d->target, &class, &silent_sink))
            plan_print(&plan, &writer);
    }
    fflush(stdout);
}

static int show(uint64_t seed)
{
    struct context context;
    struct declaration d;
    struct result result;
    declare(seed, &d);
    print_declaration(&d);
    fflush(stdout);
    print_plans(&d);
    if (!open_device(&context))
        return 2;
    judge_declaration(&context, seed, &d, &result);
    printf("%s %s %s\n", outcomes[result.outcome], result.code, result.text);
    return result.outcome >= SILENT;
}

/* The judge itself: in a process of its own, as the others are. */
static bool judges_steps(void)
{
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        struct context context;
        struct result result;
        _exit(!open_device(&context) || !judge_steps(&context, &result));
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
    uint64_t first = 1, count = UINT64_MAX / 2, each = 0;
    const char *shown = NULL;
    double seconds = 1e9;
    for (int i = 1; i < argc; i++) {
        const uint64_t value = i + 1 < argc ? strtoull(argv[i + 1], NULL, 10) : 0;
        if (i + 1 < argc && strcmp(argv[i], "--show") == 0)
            shown = argv[i + 1];
        else if (i + 1 < argc && strcmp(argv[i], "--device") == 0)
            device = argv[i + 1];
        else if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0)
            seconds = (double)value;
        else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
            first = value;
        else if (i + 1 < argc && strcmp(argv[i], "--count") == 0)
            count = value;
        else if (i + 1 < argc && strcmp(argv[i], "--each") == 0)
            each = value;
        else
            return usage_wrong(argv, argv[i],
                               "[--device emu|N] [--seconds N] [--seed FIRST] [--count N] [--each N] [--show SEED]");
        i++;
    }
    if (shown)
        return show(strtoull(shown, NULL, 10));
    struct progress_of_all *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return 2;
    all->seed = first;
    all->end = first + count;
    all->deadline = now() + seconds;
    const int code = try_all(all);
    tell_counts(all, first);
    /* As TAP, for `./dev test`. */
    const bool is_clean = code == 0 && all->n_findings == 0, has_each = fewest(all) >= each;
    const bool has_judge = judges_steps();
    printf("%s 1 - declarations\n%s 2 - %llu accepted of each kind\n", is_clean ? "ok" : "not ok",
           has_each ? "ok" : "not ok", (unsigned long long)each);
    printf("%s 3 - steps of what underflows are right, and what is no step is wrong\n1..3\n",
           has_judge ? "ok" : "not ok");
    return code ? code : !is_clean || !has_each || !has_judge;
}
