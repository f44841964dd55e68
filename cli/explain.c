/* cli/explain.c - `tegula explain`: the equations, the Table-1 rows, why a schedule is refused,
 * what the compiler made of it, and any stage of it. Needs no GPU. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

struct dump {
    tg_stage stage;
    bool is_wanted;
    json_t *stages; /* array, with --json */
};

static void dump_stage(void *user, const char *kernel, tg_stage stage, const char *text)
{
    static const char *const names[] = {[TG_STAGE_PLAN] = "plan", [TG_STAGE_LLVM] = "llvm", [TG_STAGE_PTX] = "ptx"};
    struct dump *dump = user;
    if (!dump->is_wanted || stage != dump->stage)
        return;
    if (dump->stages) {
        json_array_append_new(dump->stages,
                              json_pack("{s:s, s:s, s:s}", "kernel", kernel, "stage", names[stage], "text", text));
        return;
    }
    printf("\n---- %s of %s ----\n%s", names[stage], kernel, text);
}

static bool stage_parse(struct context *context, struct dump *dump)
{
    static const char *const names[] = {"plan", "llvm", "ptx"};
    const char *text = context->options.stage;
    if (!text)
        return true;
    for (int i = 0; i < 3; i++) {
        if (strcmp(names[i], text) == 0) {
            dump->stage = (tg_stage)i;
            dump->is_wanted = true;
            return true;
        }
    }
    complain(context, "choose plan, llvm or ptx", "--stage: unknown stage '%s'", text);
    return false;
}

/* A variant or its gradients. */
struct direction {
    struct context *context;
    const tg_variant *variant;
    const tg_target *target;
    const tg_shape_class *shape;
    const tg_shape *sizes; /* of the calls that schedules are for */
    struct wish wish;
    struct dump *dump; /* NULL: its stages are not wanted */
    json_t *json;      /* object, with --json */
};

/* ---- schedules and why they are refused ---- */

struct reasons {
    json_t *list; /* array, or NULL: only the first, as text */
    char first[512];
};

static void keep_reason(void *user, const tg_diag *diag)
{
    struct reasons *reasons = user;
    if (diag->severity != TG_ERROR)
        return; /* of no refusal */
    if (reasons->list)
        json_array_append_new(reasons->list, json_string(diag->message));
    if (!*reasons->first)
        snprintf(reasons->first, sizeof reasons->first, "%s %s", diag->code ? diag->code : "-", diag->message);
}

/* By the cost model, for calls of these sizes. */
static double predicted_ms(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *shape,
                           const tg_shape *of_call)
{
    const tg_sizes sizes = tg_sizes_of(of_call, schedule->chunk);
    tg_cost cost = {0};
    tg_cost_estimate(schedule, target, shape, &sizes, &cost, &silent_sink);
    return 1e3 * cost.seconds;
}

static json_t *schedule_json(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *shape,
                             const tg_shape *sizes)
{
    struct reasons reasons = {.list = json_array()};
    const tg_sink sink = {keep_reason, &reasons};
    struct text rows = {0};
    tg_writer writer = text_writer(&rows);
    tg_schedule_print(schedule, &writer);
    const bool is_accepted = tg_plan_check(schedule, target, shape, &sink) == TG_OK;
    json_t *json = json_pack("{s:s, s:b, s:s, s:o}", "name", schedule->name, "accepted", is_accepted, "rows",
                             text_of(&rows), "reasons", reasons.list);
    if (is_accepted)
        json_object_set_new(json, "predicted_ms", json_real(predicted_ms(schedule, target, shape, sizes)));
    text_free(&rows);
    return json;
}

enum { MOST_OPINIONS = 128, BEST_SHOWN = 6, WIDTH = 100, MAX_NAME = 64 };

/* What is said of a schedule that is not shown itself. */
struct opinion {
    char name[MAX_NAME];
    double ms; /* predicted; 0: it is refused */
    char reason[512];
    bool is_said;
};

/* A word of a list, on a line of its own where it would be too long. */
static void print_word(int *column, const char *word)
{
    const int n = (int)strlen(word);
    if (*column + n > WIDTH) {
        printf("\n     ");
        *column = 5;
    }
    *column += printf(" %s", word);
}

static int by_time(const void *a, const void *b)
{
    const struct opinion *x = a, *y = b;
    return x->ms != y->ms ? (x->ms > y->ms) - (x->ms < y->ms) : strcmp(x->name, y->name);
}

static void print_predicted(const struct opinion *opinions, uint32_t n, const tg_target *target, const tg_shape *sizes)
{
    if (n == 0)
        return;
    int column = printf("    predicted for %s at B %lld, NH %lld, T %lld:", target->gpu, (long long)sizes->batch,
                        (long long)sizes->heads, (long long)sizes->tokens);
    for (uint32_t i = 0; i < n && i < BEST_SHOWN; i++) {
        char word[MAX_NAME + 40];
        snprintf(word, sizeof word, "%.63s %.3g ms%s", opinions[i].name, opinions[i].ms,
                 i + 1 < n && i + 1 < BEST_SHOWN ? "," : "");
        print_word(&column, word);
    }
    if (n > BEST_SHOWN)
        printf("; %u more, up to %.3g ms", n - BEST_SHOWN, opinions[n - 1].ms);
    puts("");
}

/* The reason without what is the schedule's own: "TG0518 ...: wgmma is an instruction of sm_90a". */
static const char *gist(const struct opinion *opinion)
{
    const char *at = opinion->reason;
    for (const char *next; (next = strstr(at, ": ")) != NULL;)
        at = next + 2;
    return at;
}

static bool is_alike(const struct opinion *a, const struct opinion *b)
{
    return strncmp(a->reason, b->reason, strlen("TG0518")) == 0 && strcmp(gist(a), gist(b)) == 0;
}

/* Those of n that are refused for the same reason, together. */
static void print_refused(struct opinion *first, uint32_t n)
{
    uint32_t n_alike = 0;
    for (uint32_t i = 0; i < n; i++)
        n_alike += is_alike(first, &first[i]);
    if (n_alike == 1)
        printf("    REFUSED %s: %s\n", first->name, first->reason);
    int column = n_alike == 1 ? 0 : printf("    REFUSED %.6s %s:", first->reason, gist(first));
    for (uint32_t i = 0; i < n && n_alike > 1; i++) {
        if (!is_alike(first, &first[i]))
            continue;
        first[i].is_said = true;
        print_word(&column, first[i].name);
    }
    if (n_alike > 1)
        puts("");
}

/* All others of the variant: why not, or how long they should take. */
static void print_all(const struct direction *direction)
{
    static struct opinion refused[MOST_OPINIONS], accepted[MOST_OPINIONS];
    uint32_t n_refused = 0, n_accepted = 0;
    tg_schedule s;
    for (uint32_t i = 0; tg_variant_schedule(direction->variant, i, &s) && i < MOST_OPINIONS; i++) {
        struct reasons reasons = {.list = NULL};
        const tg_sink sink = {keep_reason, &reasons};
        const bool is_accepted = tg_plan_check(&s, direction->target, direction->shape, &sink) == TG_OK;
        if (is_accepted && s.max_tokens && s.max_tokens < direction->sizes->tokens)
            continue;
        struct opinion *opinion = is_accepted ? &accepted[n_accepted++] : &refused[n_refused++];
        *opinion = (struct opinion){.ms = 0};
        snprintf(opinion->name, sizeof opinion->name, "%s", s.name);
        snprintf(opinion->reason, sizeof opinion->reason, "%s", reasons.first);
        if (is_accepted)
            opinion->ms = predicted_ms(&s, direction->target, direction->shape, direction->sizes);
    }
    for (uint32_t i = 0; i < n_refused; i++)
        if (!refused[i].is_said)
            print_refused(&refused[i], n_refused - i);
    qsort(accepted, n_accepted, sizeof accepted[0], by_time);
    print_predicted(accepted, n_accepted, direction->target, direction->sizes);
}

static void print_schedule(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *shape)
{
    const tg_writer writer = file_writer(stdout);
    tg_schedule_print(schedule, &writer);
    printf("    accepted on %s with %s, dqk %u, dhv %u", target->arch, tg_dtype_name(shape->io), shape->dqk,
           shape->dhv);
    if (shape->group > 1)
        printf(", group %u", shape->group);
    if (shape->tokens)
        printf(", at most %u tokens", shape->tokens);
    printf("%s%s%s", shape->packed ? ", packed" : "", shape->pooled ? ", pooled" : "",
           shape->pooled == TG_POOL_MOVES    ? " with index_out"
           : shape->pooled == TG_POOL_TOKENS ? " with index_out of each token"
           : shape->pooled == TG_POOL_CHUNKS ? " with index_out of each chunk"
                                             : "");
    if (shape->counted)
        printf(", counted");
    if (shape->state)
        printf(", states %s", tg_dtype_name((tg_dtype)shape->state));
    printf("%s\n", shape->values_first ? ", states [dhv, dqk]" : "");
}

/* ---- one direction ---- */

static void explain_kernels(const struct direction *direction, const tg_program *program)
{
    json_t *list = direction->json ? json_array() : NULL;
    for (uint32_t i = 0; i < program->n_kernels; i++) {
        struct text facts = {0};
        if (list) {
            json_array_append_new(list, kernel_json(&program->kernels[i]));
            continue;
        }
        kernel_facts(&program->kernels[i], &facts);
        printf("    %s: %s\n", program->kernels[i].name, text_of(&facts));
        text_free(&facts);
    }
    if (list)
        json_object_set_new(direction->json, "kernels", list);
}

static int explain_program(const struct direction *direction, const tg_schedule *schedule)
{
    struct context *context = direction->context;
    tg_program *program = NULL;
    tg_compile_options how = {
        .ptxas = ptxas_find(context), .stage = direction->dump ? dump_stage : NULL, .user = direction->dump};
    progress_begin(context, "compiling %s for %s", direction->variant->name, direction->target->arch);
    const tg_status status = program_compile(context, direction->variant, schedule, direction->target, direction->shape,
                                             &how, &program, &context->sink);
    progress_end(context);
    if (status != TG_OK)
        return code_of_status(status);
    if (!direction->json)
        printf("kernels of %s, in launch order%s:\n", schedule->name,
               how.ptxas ? "" : " (without ptxas: registers unknown)");
    explain_kernels(direction, program);
    tg_program_free(program);
    return CODE_OK;
}

/* The schedule's algorithm: there may be several ways to the same tensors. */
static void explain_algorithm(const struct direction *direction, const tg_algorithm *algorithm)
{
    struct text equations = {0};
    const tg_writer writer = direction->json ? text_writer(&equations) : file_writer(stdout);
    tg_algorithm_print(algorithm, &writer);
    if (direction->json) {
        json_t *list = json_array();
        tg_schedule s;
        for (uint32_t i = 0; tg_variant_schedule(direction->variant, i, &s); i++)
            json_array_append_new(list, schedule_json(&s, direction->target, direction->shape, direction->sizes));
        json_object_set_new(direction->json, "variant", json_string(direction->variant->name));
        json_object_set_new(direction->json, "arch", json_string(direction->target->arch));
        json_object_set_new(direction->json, "equations", json_string(text_of(&equations)));
        json_object_set_new(direction->json, "schedules", list);
    } else {
        puts("");
    }
    text_free(&equations);
}

static int explain_direction(const struct direction *direction)
{
    struct choice choice;
    const bool chosen = schedule_choose(direction->context, direction->variant, direction->target, direction->shape,
                                        direction->sizes, direction->wish, &choice);
    explain_algorithm(direction, chosen ? choice.schedule.algorithm : direction->variant->algorithm);
    if (!chosen)
        return CODE_USAGE;
    if (direction->json) {
        json_object_set_new(direction->json, "chosen",
                            schedule_json(&choice.schedule, direction->target, direction->shape, direction->sizes));
    } else {
        print_schedule(&choice.schedule, direction->target, direction->shape);
        print_all(direction);
    }
    return explain_program(direction, &choice.schedule);
}

/* ---- both ---- */

/* Gradients that nothing here can compute are no mistake of the user's: the forward was explained.
 */
static int explain_backward(const struct direction *forward, json_t *json)
{
    struct direction backward = *forward;
    backward.variant = forward->variant->backward;
    backward.wish = (struct wish){forward->context->options.backward_schedule, 0};
    backward.dump = NULL;
    backward.json = json;
    if (!json)
        puts("");
    tg_schedule chosen;
    if (backward.wish.schedule ||
        tg_schedule_default(backward.variant, backward.target, backward.shape, NULL, &chosen, &silent_sink) == TG_OK)
        return explain_direction(&backward);
    explain_algorithm(&backward, backward.variant->algorithm);
    if (!json)
        print_all(&backward);
    return CODE_OK;
}

static int explain_both(struct context *context, const tg_variant *variant, const tg_target *target,
                        const tg_shape_class *shape, const tg_shape *sizes, struct dump *dump)
{
    const bool is_json = context->options.json;
    struct direction forward = {.context = context,
                                .variant = variant,
                                .target = target,
                                .shape = shape,
                                .sizes = sizes,
                                .wish = wish_of(&context->options),
                                .dump = dump,
                                .json = is_json ? json_object() : NULL};
    int code = explain_direction(&forward);
    /* A decode step has no gradients. */
    if (code == CODE_OK && variant->backward && !shape->tokens) {
        json_t *backward = is_json ? json_object() : NULL;
        code = explain_backward(&forward, backward);
        if (is_json)
            json_object_set_new(forward.json, "backward", backward);
    }
    if (is_json && code == CODE_OK) {
        json_object_set(forward.json, "stages", dump->stages);
        json_print(forward.json);
    } else {
        json_decref(forward.json);
    }
    return code;
}

int command_explain(struct context *context)
{
    struct dump dump = {.stages = NULL};
    tg_shape_class shape;
    tg_shape sizes;
    const tg_variant *variant = variant_by_name(context, context->options.args[0]);
    if (!variant || !stage_parse(context, &dump) || !shape_class_wanted(context, &shape, &sizes))
        return CODE_USAGE;
    const tg_target *target = target_wanted(context);
    if (!target)
        return CODE_USAGE;
    dump.stages = context->options.json ? json_array() : NULL;
    int code = explain_both(context, variant, target, &shape, &sizes, &dump);
    json_decref(dump.stages);
    return code;
}
