/* cli/explain.c - `tegula explain`: the equations, the Table-1 rows, why a schedule is refused,
 * what the compiler made of it, and any stage of it. Needs no GPU. */
#include "cli.h"

#include <string.h>

struct dump {
    tg_stage stage;
    bool is_wanted;
    json_t *stages; /* array, with --json */
};

static void dump_stage(void *user, const char *kernel, tg_stage stage, const char *text)
{
    static const char *const names[] = {
        [TG_STAGE_PLAN] = "plan", [TG_STAGE_LLVM] = "llvm", [TG_STAGE_PTX] = "ptx"};
    struct dump *dump = user;
    if (!dump->is_wanted || stage != dump->stage)
        return;
    if (dump->stages) {
        json_array_append_new(dump->stages, json_pack("{s:s, s:s, s:s}", "kernel", kernel, "stage",
                                                      names[stage], "text", text));
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

/* ---- schedules and why they are refused ---- */

struct reasons {
    json_t *list; /* array, with --json */
};

static void keep_reason(void *user, const tg_diag *diag)
{
    struct reasons *reasons = user;
    if (reasons->list)
        json_array_append_new(reasons->list, json_string(diag->message));
    else
        printf("      %s %s\n", diag->code ? diag->code : "-", diag->message);
    if (!reasons->list && diag->hint)
        printf("        hint: %s\n", diag->hint);
}

static void explain_schedule(const tg_schedule *schedule, const tg_target *target,
                             const tg_shape_class *shape, json_t *list)
{
    struct reasons reasons = {list ? json_array() : NULL};
    const tg_sink sink = {keep_reason, &reasons};
    struct text rows = {0};
    tg_writer writer = list ? text_writer(&rows) : file_writer(stdout);
    tg_schedule_print(schedule, &writer);
    tg_status status = tg_plan_check(schedule, target, shape, &silent_sink);
    if (list) {
        tg_plan_check(schedule, target, shape, &sink);
        json_array_append_new(list, json_pack("{s:s, s:b, s:s, s:o}", "name", schedule->name,
                                              "accepted", status == TG_OK, "rows", text_of(&rows),
                                              "reasons", reasons.list));
    } else {
        printf("    %s on %s with %s, dqk %u, dhv %u\n", status == TG_OK ? "accepted" : "REFUSED",
               target->arch, tg_dtype_name(shape->io), shape->dqk, shape->dhv);
        tg_plan_check(schedule, target, shape, &sink);
    }
    text_free(&rows);
}

/* ---- kernels ---- */

static json_t *explain_kernels(const tg_program *program, bool json)
{
    json_t *list = json ? json_array() : NULL;
    for (uint32_t i = 0; i < program->n_kernels; i++) {
        struct text facts = {0};
        if (json) {
            json_array_append_new(list, kernel_json(&program->kernels[i]));
            continue;
        }
        kernel_facts(&program->kernels[i], &facts);
        printf("    %s: %s\n", program->kernels[i].name, text_of(&facts));
        text_free(&facts);
    }
    return list;
}

static int explain_all(struct context *context, const tg_variant *variant, const tg_target *target,
                       const tg_shape_class *shape, struct dump *dump)
{
    const bool json = context->options.json;
    json_t *schedules = json ? json_array() : NULL;
    struct text equations = {0};
    tg_writer writer = json ? text_writer(&equations) : file_writer(stdout);
    struct choice choice;
    tg_program *program = NULL;

    tg_algorithm_print(variant->algorithm, &writer);
    if (!json)
        puts("");
    for (const tg_schedule *const *s = variant->schedules; *s; s++)
        explain_schedule(*s, target, shape, schedules);
    if (!schedule_choose(context, variant, target, shape, NULL, wish_of(&context->options),
                         &choice)) {
        json_decref(schedules);
        text_free(&equations);
        return CODE_USAGE;
    }
    if (context->options.schedule || context->options.chunk)
        explain_schedule(&choice.schedule, target, shape, schedules);

    const tg_compile_options how = {
        .ptxas = ptxas_find(context), .stage = dump_stage, .user = dump};
    progress_begin(context, "compiling %s for %s", variant->name, target->arch);
    tg_status status =
        tg_compile(variant, &choice.schedule, target, shape, &how, &program, &context->sink);
    progress_end(context);
    if (status == TG_OK) {
        if (!json)
            printf("\nkernels of %s, in launch order%s:\n", choice.schedule.name,
                   how.ptxas ? "" : " (no ptxas found: registers unknown)");
        json_t *kernels = explain_kernels(program, json);
        if (json)
            json_print(json_pack("{s:s, s:s, s:s, s:O, s:o, s:O}", "variant", variant->name, "arch",
                                 target->arch, "equations", text_of(&equations), "schedules",
                                 schedules, "kernels", kernels, "stages", dump->stages));
        tg_program_free(program);
    }
    json_decref(schedules);
    text_free(&equations);
    return code_of_status(status);
}

int command_explain(struct context *context)
{
    struct dump dump = {.stages = NULL};
    tg_shape_class shape;
    const tg_variant *variant = variant_by_name(context, context->options.args[0]);
    if (!variant || !stage_parse(context, &dump) || !shape_class_wanted(context, &shape))
        return CODE_USAGE;
    const tg_target *target = target_wanted(context);
    if (!target)
        return CODE_USAGE;
    dump.stages = context->options.json ? json_array() : NULL;
    int code = explain_all(context, variant, target, &shape, &dump);
    json_decref(dump.stages);
    return code;
}
