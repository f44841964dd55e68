/* cli/tune.c - `tegula tune`: asks tg_tune for the fastest schedule of a shape, shows what it found and remembers the best.
 * Ctrl-C ends the search, and what was found so far counts. */
#include "tune.h"

#include <signal.h>
#include <string.h>
#include <strings.h>

static const double default_budget = 20; /* seconds */

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t is_interrupted;

/* The second one ends the process, as ever. */
static void interrupt(int signal_number)
{
    is_interrupted = 1;
    signal(signal_number, SIG_DFL);
}

static void heed_interrupts(struct sigaction *before)
{
    struct sigaction once = {.sa_handler = interrupt};
    is_interrupted = 0;
    sigemptyset(&once.sa_mask);
    sigaction(SIGINT, NULL, before);
    if (before->sa_handler != SIG_IGN)
        sigaction(SIGINT, &once, NULL);
}

static int tell(void *user, const tg_tuning *so_far, const tg_candidate *candidate, const char *step)
{
    const unsigned int number = (unsigned int)(candidate - so_far->candidates) + 1;
    progress(user, "candidate %u: %s, %s", number, candidate->text, step);
    return is_interrupted;
}

/* ---- the result ---- */

/* The next call finds the winner compiled. */
static void keep_kernel(struct context *context, const tg_tune_request *request, const tg_schedule *schedule)
{
    const tg_shape_class class = tg_shape_class_of(&request->shape, request->io);
    struct kernel kernel;
    if (kernel_build(context, request->variant, schedule, &class, &kernel, &silent_sink))
        kernel_free(&kernel);
}

static bool remember(struct context *context, const tg_tune_request *request, const tg_tuning *tuning)
{
    const char *path = wisdom_path(context);
    if (!*tuning->wisdom.variant) {
        complain(context, "give what it found with --schedule", "the name of %s with its group is too long for wisdom",
                 request->variant->name);
        return false;
    }
    if (!*path) {
        complain(context, "name a file with --wisdom", "no place for the result: HOME is not set");
        return false;
    }
    if (tg_wisdom_add(path, &tuning->wisdom, &context->sink) != TG_OK)
        return false;
    keep_kernel(context, request, &tuning->best->schedule);
    if (!context->options.json)
        printf("\n  best: %s\n  remembered in %s, which goes before the wisdom that tegula brings\n",
               tuning->best->text, path);
    return true;
}

static int show(struct context *context, const tg_tune_request *request, const tg_tuning *tuning)
{
    if (tuning->is_cancelled)
        remark("interrupted after %u candidates%s", tuning->n_candidates,
               tuning->best ? ": the best of these counts" : "; nothing was found so far");
    if (!tuning->best)
        return CODE_FAILED;
    if (context->options.json)
        json_print(tuning_json(request, tuning));
    else
        tuning_print(request, tuning);
    return !request->machine->driver || remember(context, request, tuning) ? CODE_OK : CODE_USAGE;
}

static int tune(struct context *context, const tg_tune_request *request)
{
    tg_tuning tuning;
    struct sigaction before;
    progress_begin(context, "tuning %s", request->variant->name);
    heed_interrupts(&before);
    const tg_status status = tg_tune(request, &tuning, &context->sink);
    sigaction(SIGINT, &before, NULL);
    progress_end(context);
    const int code = status == TG_OK ? show(context, request, &tuning) : code_of_status(status);
    tg_tuning_free(&tuning);
    return code;
}

/* ---- which GPU ---- */

/* A machine without a driver, when there is no GPU, or when one is asked for by --gpu: a prediction. */
static bool choose_machine(struct context *context, tg_machine *machine)
{
    if (context->options.gpu) {
        *machine = (tg_machine){.target = target_of_gpu(context)};
        return machine->target != NULL;
    }
    if (!machine_open(context))
        return false;
    *machine = context->machine;
    if (!machine->is_emulator)
        return true;
    *machine = (tg_machine){.target = machine->target};
    if (!context->options.arch && tg_target_find("sm_90a"))
        machine->target = tg_target_find("sm_90a"); /* the emulator itself has no speed to predict */
    remark("no GPU to measure on: this is the cost model's prediction (--gpu or --arch choose of "
           "what), and nothing is stored");
    return true;
}

int command_tune(struct context *context)
{
    const struct options *options = &context->options;
    tg_machine machine;
    tg_tune_request request = {.machine = &machine,
                               .variant = variant_by_name(context, options->args[0]),
                               .io = TG_BF16,
                               .budget_seconds = options->budget_seconds > 0 ? options->budget_seconds : default_budget,
                               .runs = options->runs > 0 && options->runs <= 10000 ? (uint32_t)options->runs : 0,
                               .keep = options->keep < UINT32_MAX ? (uint32_t)options->keep : UINT32_MAX,
                               .seed = (uint64_t)options->seed,
                               .ptxas = ptxas_given(context),
                               .progress = tell,
                               .user = context};
    if (!request.variant || (options->dtype && !dtype_parse(context, options->dtype, &request.io)))
        return CODE_USAGE;
    request.forward = variant_forward(context, request.variant);
    if (options->n_shapes != 1) {
        complain(context, "--shape B=8,NH=16,T=8192,dqk=128,dhv=256", "`tegula tune` needs one --shape, found %u",
                 options->n_shapes);
        return CODE_USAGE;
    }
    request.shape = options->shapes[0];
    if (!options_shape(context, &request.shape))
        return CODE_USAGE;
    const tg_shape_class class = tg_shape_class_of(&request.shape, request.io);
    if (!shape_class_check(context, &class) || !choose_machine(context, &machine))
        return CODE_USAGE;
    return tune(context, &request);
}
