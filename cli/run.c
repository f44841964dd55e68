/* cli/run.c - `tegula run`: a kernel on the tensors of a file, its outputs into another.
 * --time says where the time from process start went; what is ours is compile and load. */
#include "cli.h"
#include "draft.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

enum phase { START, OPEN_DRIVER, READ, COMPILE, LOAD, COPY_IN, RUN, COPY_OUT, N_PHASES };

struct run {
    struct context *context;
    const tg_variant *variant;
    tg_problem problem;
    struct file_notes notes;
    struct choice choice;
    struct kernel kernel;
    double phases[N_PHASES]; /* seconds */
    double mark, first_result;
};

static void phase_end(struct run *run, enum phase phase)
{
    double time = now();
    run->phases[phase] += time - run->mark;
    run->mark = time;
}

/* Found out before the work, not after it. */
static bool output_is_writable(struct context *context)
{
    const char *path = context->options.output;
    struct stat in, out;
    char folder[4096];
    if (stat(context->options.input, &in) == 0 && stat(path, &out) == 0 && in.st_dev == out.st_dev &&
        in.st_ino == out.st_ino) {
        complain(context, "choose another file", "--out %s: it is the file with the inputs", path);
        return false;
    }
    if (!draft_is_possible(path)) {
        complain(context, "name a file", "--out %s: cannot write: %s", path, draft_reason());
        return false;
    }
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    if (access(slash ? folder : ".", W_OK | X_OK) == 0)
        return true;
    complain(context, "create the folder, or choose another with --out",
             "%s: the folder does not exist or may not be written to", path);
    return false;
}

/* The variant that is named, or else the file's. Of another than the file's it is said. */
static bool find_variant(struct run *run, const struct st_file *file)
{
    struct context *context = run->context;
    const char *named = context->options.n_args ? context->options.args[0] : NULL, *of_file = st_meta(file, "variant");
    const tg_variant *meant = named && of_file ? variant_lookup(context, of_file) : NULL;
    if (!named && !of_file) {
        complain(context, "name it: tegula run VARIANT --in FILE --out FILE",
                 "%s: no metadata `variant` says what it is for", context->options.input);
        return false;
    }
    run->variant = variant_by_name(context, named ? named : of_file);
    if (run->variant && meant && run->variant != meant && run->variant != meant->backward)
        remark("%s says that it is for %s; %s is run, as named", context->options.input, meant->name,
               run->variant->name);
    return run->variant != NULL;
}

static bool read_input(struct run *run)
{
    struct context *context = run->context;
    struct st_file *file;
    char error[512];
    if (!st_open(context->options.input, &file, error, sizeof error)) {
        complain(context, "give a safetensors file with the variant's inputs", "%s", error);
        return false;
    }
    const bool ok = find_variant(run, file) && problem_read(context, run->variant, file, context->options.input, false,
                                                            &run->problem, &run->notes);
    st_close(file);
    return ok;
}

/* What a schedule takes from another program's run, no file brings along. */
static bool has_all_inputs(struct run *run)
{
    for (uint32_t i = 0; i < run->problem.n_tensors; i++) {
        const tg_host_tensor *tensor = &run->problem.tensors[i];
        if (!tensor->is_kept || !(tensor->flags & TG_IN))
            continue;
        complain(run->context, "choose another with --schedule; `tegula check --keep-states` does both",
                 "schedule %s takes %s of a forward", run->choice.schedule.name, tensor->name);
        return false;
    }
    return true;
}

static tg_status run_kernel(struct run *run)
{
    struct context *context = run->context;
    tg_call call;
    tg_status status = tg_call_open(&call, &context->machine, run->kernel.module, &run->problem,
                                    run->choice.schedule.chunk, &context->sink);
    if (status != TG_OK)
        return status;
    phase_end(run, COPY_IN);
    progress(context, "running on %s", context->machine.device.name);
    status = tg_call_run(&call, &context->sink);
    phase_end(run, RUN);
    run->first_result = run->mark - context->process_start;
    if (status == TG_OK)
        status = tg_call_fetch(&call, &run->problem, &context->sink);
    tg_call_close(&call);
    phase_end(run, COPY_OUT);
    return status;
}

/* As files say it: numbers by name, and the boundaries of packed sequences. */
static void scalars_text(const tg_problem *problem, struct text *text)
{
    tg_writer writer = text_writer(text);
    for (uint32_t i = 0; i < problem->n_scalars; i++)
        tg_printf(&writer, "%s\"%s\": %.17g", i ? ", " : "{", problem->declared[i].name, problem->scalars[i]);
    for (int64_t s = 0; problem->cuts.at && s <= problem->cuts.n; s++)
        tg_printf(&writer, "%s%lld", s ? ", " : ", \"cu\": [", (long long)problem->cuts.at[s]);
    tg_printf(&writer, problem->cuts.at ? "]}" : "}");
}

static bool is_output(const tg_host_tensor *tensor)
{
    return tensor->flags & TG_OUT && tensor->data;
}

/* As the inputs are called: out.h beside in.q, h beside q. */
static void name_output(const struct run *run, const tg_host_tensor *tensor, char name[64])
{
    if (run->notes.is_prefixed)
        tensor_file_name(tensor, name);
    else
        snprintf(name, 64, "%s", tensor->name);
}

/* In the file's order from here on. */
static bool turn_output(const struct run *run, tg_host_tensor *tensor)
{
    void *turned = malloc(tensor->bytes + 1);
    if (!turned) {
        complain(run->context, "use a smaller file", "out of memory");
        return false;
    }
    layout_turn(tensor, tg_num_bytes(tensor->dtype), tensor->data, turned, false);
    free(tensor->data);
    tensor->data = turned;
    const int64_t heads = tensor->extent[1];
    tensor->extent[1] = tensor->extent[2];
    tensor->extent[2] = heads;
    return true;
}

static bool turn_outputs(struct run *run)
{
    bool ok = true;
    for (uint32_t i = 0; i < run->problem.n_tensors; i++) {
        tg_host_tensor *tensor = &run->problem.tensors[i];
        if (is_output(tensor) && is_turned_in_files(run->context, tensor))
            ok = ok && turn_output(run, tensor);
    }
    return ok;
}

static struct st_tensor output_of(const tg_host_tensor *tensor, const char *name)
{
    struct st_tensor output = {.name = name,
                               .dtype = tensor->dtype,
                               .rank = tensor->rank - tensor->first_axis,
                               .data = tensor->data,
                               .bytes = tensor->bytes};
    memcpy(output.shape, tensor->extent + tensor->first_axis, (size_t)output.rank * sizeof tensor->extent[0]);
    return output;
}

static bool write_output(const struct run *run)
{
    struct st_tensor tensors[TG_MAX_TENSORS];
    char names[TG_MAX_TENSORS][64], error[512], schedule[TG_SCHEDULE_TEXT];
    struct text scalars = {0};
    size_t n = 0;
    for (uint32_t i = 0; i < run->problem.n_tensors; i++) {
        if (!is_output(&run->problem.tensors[i]))
            continue;
        name_output(run, &run->problem.tensors[i], names[n]);
        tensors[n] = output_of(&run->problem.tensors[i], names[n]);
        n++;
    }
    tg_schedule_text(run->variant, &run->choice.schedule, schedule);
    scalars_text(&run->problem, &scalars);
    const struct st_pair meta[] = {
        {"variant", run->variant->name},
        {"device", run->context->machine.device.name},
        {"schedule", schedule},
        {"scalars", text_of(&scalars)},
    };
    const struct st_contents contents = {tensors, n, meta, sizeof meta / sizeof meta[0]};
    const bool ok = st_write(run->context->options.output, &contents, error, sizeof error);
    text_free(&scalars);
    if (!ok)
        complain(run->context, "choose a place that you may write to, with room on its disk", "%s", error);
    return ok;
}

static json_t *outputs_json(const struct run *run)
{
    json_t *outputs = json_array();
    for (uint32_t i = 0; i < run->problem.n_tensors; i++) {
        char name[64];
        name_output(run, &run->problem.tensors[i], name);
        if (is_output(&run->problem.tensors[i]))
            json_array_append_new(outputs, json_string(name));
    }
    return outputs;
}

static void report(const struct run *run)
{
    static const char *const names[N_PHASES] = {"start", "open_driver", "read", "compile",
                                                "load",  "copy_in",     "run",  "copy_out"};
    static const char *const texts[N_PHASES] = {"process start, to 10 ms",
                                                "open driver and context, beyond compiling",
                                                "read and check the input",
                                                "compile",
                                                "load into the driver",
                                                "allocate and copy in",
                                                "run",
                                                "copy out"};
    const tg_shape *shape = &run->problem.shape;
    const double ours = run->phases[COMPILE] + run->phases[LOAD];
    const bool json = run->context->options.json;
    char text[TG_SCHEDULE_TEXT];
    tg_schedule_text(run->variant, &run->choice.schedule, text);
    json_t *times = json ? json_object() : NULL;
    if (!json)
        printf("%s %s, B=%lld NH=%lld T=%lld dqk=%lld dhv=%lld; schedule %s (%s), on %s: %s\n", run->variant->name,
               tg_dtype_name(run->problem.io), (long long)shape->batch, (long long)shape->heads,
               (long long)shape->tokens, (long long)shape->dqk, (long long)shape->dhv, text, run->choice.origin,
               run->context->machine.device.name, run->context->options.output);
    for (int i = 0; i < N_PHASES && run->context->options.time; i++) {
        if (json)
            json_object_set_new(times, names[i], json_real(run->phases[i]));
        else
            printf("  %8.1f ms  %s%s\n", 1e3 * run->phases[i], texts[i],
                   i == COMPILE && run->kernel.is_cached ? " (from the cache)" : "");
    }
    if (json && run->context->options.time) {
        json_object_set_new(times, "ours", json_real(ours));
        json_object_set_new(times, "first_result", json_real(run->first_result));
    } else if (run->context->options.time) {
        printf("  %8.1f ms  from process start to the first result\n", 1e3 * run->first_result);
        printf("  %8.1f ms  of that our own: compile and load\n", 1e3 * ours);
    }
    if (json)
        json_print(json_pack("{s:b, s:s, s:s, s:s, s:i, s:s, s:b, s:o, s:o}", "ok", 1, "out",
                             run->context->options.output, "device", run->context->machine.device.name, "schedule",
                             text, "chunk", (int)run->choice.schedule.chunk, "origin", run->choice.origin, "cached",
                             run->kernel.is_cached, "seconds", times, "outputs", outputs_json(run)));
}

static int run_opened(struct run *run)
{
    struct context *context = run->context;
    const tg_shape *shape = &run->problem.shape;
    const tg_shape_class class = tg_shape_class_of(shape, run->problem.io);
    if (!schedule_choose(context, run->variant, context->machine.target, &class, shape, wish_of(&context->options),
                         &run->choice))
        return CODE_USAGE;
    phase_end(run, READ);
    const double begin = run->mark;
    if (!kernel_build(context, run->variant, &run->choice.schedule, &class, &run->kernel, &context->sink))
        return CODE_FAILED;
    run->mark = now();
    run->phases[COMPILE] = run->kernel.compile_seconds;
    run->phases[LOAD] = run->kernel.load_seconds;
    run->phases[OPEN_DRIVER] += run->mark - begin - run->kernel.compile_seconds - run->kernel.load_seconds;
    int code = CODE_USAGE;
    if (tg_problem_keep(run->kernel.program, run->choice.schedule.chunk, &run->problem, &context->sink) == TG_OK &&
        has_all_inputs(run))
        code = code_of_status(run_kernel(run));
    if (code == CODE_OK && !(turn_outputs(run) && write_output(run)))
        code = CODE_USAGE;
    if (code == CODE_OK)
        report(run);
    kernel_free(&run->kernel);
    return code;
}

int command_run(struct context *context)
{
    struct run run = {.context = context, .mark = now()};
    run.phases[START] = run.mark - context->process_start;
    if (!context->options.input || !context->options.output) {
        complain(context, "usage: tegula run [VARIANT] --in FILE --out FILE", "`tegula run` needs %s",
                 context->options.input ? "--out" : "--in");
        return CODE_USAGE;
    }
    if ((context->options.n_args && !variant_by_name(context, context->options.args[0])) ||
        !layout_is_known(context, context->options.file_layout) || !output_is_writable(context))
        return CODE_USAGE;
    /* The input first: a wrong file should not wait for a driver. */
    if (!read_input(&run))
        return CODE_USAGE;
    phase_end(&run, READ);
    int code = CODE_USAGE;
    if (machine_begin(context)) {
        phase_end(&run, OPEN_DRIVER);
        progress_begin(context, "compiling %s", run.variant->name);
        code = run_opened(&run);
        progress_end(context);
    }
    tg_problem_free(&run.problem);
    return code;
}
