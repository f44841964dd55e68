/* tests/kernels/harness.c - the device, programs, and what a trial is made of. */
#include "harness.h"
#include "tests/made.h"

#include "dsl/slice.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/tegula_emu.h"

struct context machine_context;
static const tg_target *own_target; /* of the GPU, or of the emulator as it comes */

/* ---- messages ---- */

static struct {
    char text[8192];
    size_t n;
} messages;

static void log_emit(void *user, const tg_diag *diag)
{
    (void)user;
    int n = snprintf(messages.text + messages.n, sizeof messages.text - messages.n, "%s %s\n",
                     diag->code ? diag->code : "", diag->message);
    if (n > 0 && (size_t)n < sizeof messages.text - messages.n)
        messages.n += (size_t)n;
}

const tg_sink log_sink = {log_emit, NULL};

const char *log_text(void)
{
    return messages.text;
}

void log_clear(void)
{
    messages.n = 0;
    messages.text[0] = '\0';
}

/* ---- the device ---- */

bool harness_open(const char *device, const char *arch)
{
    context_init(&machine_context);
    machine_context.options.device = device;
    machine_context.options.arch = arch;
    machine_context.options.no_cache = strcmp(device, "emu") == 0; /* ptxas takes its time */
    machine_context.options.no_wisdom = true;
    if (!machine_open(&machine_context))
        return false;
    own_target = machine_context.machine.target;
    if (on_emulator())
        made_quickly();
    printf("# %s, kernels for %s\n", machine_context.machine.device.name, own_target->arch);
    return true;
}

bool on_emulator(void)
{
    return machine_context.machine.is_emulator;
}

static struct tgemu_config emulator_config(void)
{
    void (*get)(struct tgemu_config *);
    struct tgemu_config config = {.struct_size = sizeof config};
    *(void **)&get = dlsym(machine_context.emulator, "tgemu_get_config");
    get(&config);
    return config;
}

static void emulator_configure(const struct tgemu_config *config)
{
    int (*set)(const struct tgemu_config *);
    *(void **)&set = dlsym(machine_context.emulator, "tgemu_configure");
    set(config);
}

void emulator_seed(uint64_t seed)
{
    if (!machine_context.emulator)
        return;
    struct tgemu_config config = emulator_config();
    config.seed = seed;
    emulator_configure(&config);
}

void emulator_threads(int n)
{
    if (!machine_context.emulator)
        return;
    struct tgemu_config config = emulator_config();
    config.threads = n;
    emulator_configure(&config);
}

/* What is compiled and loaded from now on is for this target. */
static void use_target(const tg_target *target)
{
    machine_context.machine.target = target;
    if (!machine_context.emulator)
        return;
    struct tgemu_config config = emulator_config();
    config.cc_major = target->cc / 10;
    config.cc_minor = target->cc % 10;
    config.smem_optin = target->shared_optin;
    emulator_configure(&config);
}

/* ---- programs ----
 * Cases share them, for compiling takes longer than most calls; and what is loaded, as far as there
 * is room. */

enum { MAX_PROGRAMS = 4096, MAX_LOADED = 24 };

static struct program {
    char key[33];
    const tg_variant *variant;
    tg_program *program;
    tg_module *module; /* NULL: not loaded now */
    uint64_t last_use;
    bool is_plain;
} programs[MAX_PROGRAMS];
static size_t n_programs;
static uint64_t n_uses;
static bool is_plain = true;

void harness_plainly(bool is)
{
    is_plain = is;
    made_plainly(is);
}

static struct program *find_program(const tg_variant *variant, const char *key)
{
    for (size_t i = 0; i < n_programs; i++)
        if (programs[i].variant == variant && programs[i].is_plain == is_plain && strcmp(programs[i].key, key) == 0)
            return &programs[i];
    return NULL;
}

static void unload(struct program *program)
{
    if (program->module)
        tg_unload(program->module);
    program->module = NULL;
}

/* Modules of trials that are open are among those used last. */
static void make_room(void)
{
    struct program *oldest = NULL;
    size_t n = 0;
    for (size_t i = 0; i < n_programs; i++) {
        if (!programs[i].module)
            continue;
        n++;
        if (!oldest || programs[i].last_use < oldest->last_use)
            oldest = &programs[i];
    }
    if (n >= MAX_LOADED)
        unload(oldest);
}

/* A new one, or the one whose last use is longest ago, which no trial has open then. */
static struct program *make_place(void)
{
    if (n_programs < MAX_PROGRAMS)
        return &programs[n_programs++];
    struct program *oldest = programs;
    for (size_t i = 1; i < n_programs; i++)
        if (programs[i].last_use < oldest->last_use)
            oldest = &programs[i];
    unload(oldest);
    tg_program_free(oldest->program);
    return oldest;
}

static struct program *make_program(const tg_variant *variant, const tg_schedule *schedule, const tg_shape_class *class,
                                    const char *key)
{
    struct kernel kernel;
    if (!kernel_build(&machine_context, variant, schedule, class, &kernel, &log_sink))
        return NULL;
    struct program *made = make_place();
    *made =
        (struct program){.variant = variant, .program = kernel.program, .module = kernel.module, .is_plain = is_plain};
    snprintf(made->key, sizeof made->key, "%s", key);
    return made;
}

bool harness_load(const tg_variant *variant, const tg_schedule *schedule, const tg_shape_class *class,
                  struct kernel *kernel)
{
    char key[33];
    tg_compile_key(schedule, machine_context.machine.target, class, NULL, key);
    struct program *program = find_program(variant, key);
    if (!program || !program->module)
        make_room();
    if (!program) {
        program = make_program(variant, schedule, class, key);
        char unknown[MADE_UNKNOWN]; /* slow, and nobody would notice */
        tap_expect(!made_unknown(unknown), "tests/plain does not know %s", unknown);
    } else if (!program->module &&
               tg_load(machine_context.machine.driver, program->program, &program->module, &log_sink) != TG_OK) {
        program->module = NULL;
    }
    if (!program || !program->module)
        return false;
    program->last_use = ++n_uses;
    kernel->program = program->program;
    kernel->module = program->module;
    return true;
}

/* A fault takes all modules with it. */
void emulator_reset(void)
{
    void (*reset)(void);
    for (size_t i = 0; i < n_programs; i++)
        unload(&programs[i]);
    if (!machine_context.emulator)
        return;
    *(void **)&reset = dlsym(machine_context.emulator, "tgemu_reset");
    reset();
}

void harness_close(void)
{
    for (size_t i = 0; i < n_programs; i++) {
        unload(&programs[i]);
        tg_program_free(programs[i].program);
    }
    context_close(&machine_context);
}

/* ---- trials ---- */

const tg_variant *spec_variant(const struct spec *spec)
{
    if (spec->own)
        return spec->own;
    return spec->variant ? tg_variant_find(spec->variant) : &tg_mlstm_sig;
}

bool spec_has_one_chunk(const struct spec *spec)
{
    const tg_variant *variant = tg_variant_find(spec->variant);
    return variant && tg_has_one_chunk(variant->algorithm);
}

bool spec_has_schedule(const struct spec *spec, const char *name)
{
    tg_schedule schedule;
    return tg_variant_schedule_named(spec_variant(spec), name, &schedule, NULL) == TG_OK;
}

/* "0 5 5 40" */
static tg_cuts parse_cuts(const char *text)
{
    tg_cuts cuts = {malloc((strlen(text) + 1) * sizeof *cuts.at), -1};
    char *end = (char *)text;
    while (cuts.at && *end) {
        cuts.at[++cuts.n] = strtoll(end, &end, 10);
        end += strspn(end, " ");
    }
    return cuts;
}

/* "eps=0.01 exact=0"; what only one direction has is left to it. */
static void set_scalars(tg_problem *problem, const struct spec *spec)
{
    if (spec->scale > 0)
        problem->scale = spec->scale;
    for (const char *at = spec->scalars; at && *at; at += strspn(at, " ")) {
        char name[16];
        const size_t n = strcspn(at, "=");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        const int scalar = tg_problem_scalar(problem, name);
        tap_expect(scalar >= 0, "no scalar %s", name);
        char *end;
        problem->scalars[scalar < 0 ? 0 : scalar] = strtod(at + n + 1, &end);
        at = end;
    }
}

static bool make_problem(struct trial *trial, const tg_variant *variant)
{
    const struct spec *spec = trial->spec;
    tg_shape shape = {.batch = spec->batch,
                      .heads = spec->heads,
                      .tokens = spec->tokens,
                      .dqk = spec->dqk,
                      .dhv = spec->dhv,
                      .group = spec->group ? spec->group : 1,
                      .packed = spec->cuts != NULL,
                      .pooled = spec->is_pooled};
    tg_problem *problem = &trial->problem;
    if (!problem_declare(&machine_context, variant, spec->io, problem))
        return false;
    if (spec->cuts) {
        problem->cuts = parse_cuts(spec->cuts);
        shape.batch = problem->cuts.n;
        shape.tokens = problem->cuts.at[problem->cuts.n];
    }
    if (tg_problem_size(&shape, problem, &machine_context.sink) != TG_OK)
        return false;
    set_scalars(problem, spec);
    return true;
}

/* Half as many slots again as there are sequences, and some, in a random order. */
static bool make_pool(struct trial *trial)
{
    const tg_random random = {3, tg_num_stream("slots")};
    const int64_t batch = trial->problem.shape.batch;
    trial->n_slots = batch + batch / 2 + 3;
    trial->slot = malloc((size_t)trial->n_slots * sizeof *trial->slot);
    for (int64_t i = 0; trial->slot && i < trial->n_slots; i++) {
        const int64_t other = (int64_t)(tg_num_bits(random, (uint64_t)i) % (uint64_t)(i + 1));
        trial->slot[i] = trial->slot[other];
        trial->slot[other] = i;
    }
    return trial->slot != NULL;
}

/* wgmma is of one architecture. */
static bool has_wgmma(const tg_schedule *schedule)
{
    bool has = false;
    for (uint32_t row = 0; row < schedule->n_rows; row++)
        has |= schedule->rows[row].mma == TG_MMA_WGMMA;
    return has;
}

/* The emulator becomes the GPU that a schedule needs; a GPU is what it is. */
static const tg_target *target_of(const tg_variant *variant, const char *schedule)
{
    tg_schedule named;
    const bool is_named = tg_variant_schedule_named(variant, schedule, &named, NULL) == TG_OK;
    return is_named && has_wgmma(&named) ? tg_target_find("sm_90a") : own_target;
}

static bool compile(struct trial *trial, const tg_variant *variant, const char *schedule_text)
{
    char with_chunk[32] = "";
    if (trial->spec->chunk) /* a default that takes it */
        snprintf(with_chunk, sizeof with_chunk, "chunk=%d", (int)trial->spec->chunk);
    const char *text = schedule_text && *schedule_text ? schedule_text : with_chunk;
    const tg_target *target = target_of(variant, text);
    tg_shape_class class = tg_shape_class_of(&trial->problem.shape, trial->spec->io);
    tg_schedule schedule;
    machine_context.sink = log_sink;
    if (target != own_target && !on_emulator()) {
        tap_skip("%s is for %s", text, target->arch);
        return false;
    }
    use_target(target);
    if (!schedule_from_text(&machine_context, variant, target, &class, NULL, text, &schedule))
        return tap_expect(false, "schedule '%s': %s", text, log_text());
    class.tokens = schedule.max_tokens;
    if (!harness_load(variant, &schedule, &class, &trial->kernel))
        return tap_expect(false, "build: %s", log_text());
    return true;
}

static bool open_direction(struct trial *trial, const struct spec *spec, const tg_variant *variant,
                           const char *schedule)
{
    *trial =
        (struct trial){.spec = spec, .layout = spec->layout, .chunk = spec->chunk, .without_final = spec->no_final};
    log_clear();
    return tap_expect(make_problem(trial, variant), "no problem: %s", log_text()) &&
           (!spec->is_pooled || tap_expect(make_pool(trial), "no memory for the pool")) &&
           compile(trial, variant, schedule) &&
           tap_expect(tg_problem_keep(trial->kernel.program, spec->chunk, &trial->problem, &machine_context.sink) ==
                          TG_OK,
                      "kept states: %s", log_text());
}

bool trial_open(struct trial *trial, const struct spec *spec)
{
    if (open_direction(trial, spec, spec_variant(spec), spec->schedule) && fill_inputs(&trial->problem, spec))
        return true;
    trial_close(trial);
    return false;
}

/* The forward's inputs are the backward's, by name. */
static bool take_inputs(tg_problem *problem, const tg_problem *forward)
{
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        tg_host_tensor *tensor = &problem->tensors[i];
        const tg_host_tensor *from = tg_problem_tensor((tg_problem *)forward, tensor->name);
        if (!(tensor->flags & TG_IN) || !from || !(from->flags & TG_IN) || !from->data)
            continue;
        if (!tap_expect(from->bytes == tensor->bytes, "%s: another size", tensor->name) ||
            tg_problem_allocate(tensor, &machine_context.sink) != TG_OK)
            return false;
        memcpy(tensor->data, from->data, tensor->bytes);
    }
    return tg_problem_feed(forward, problem, &machine_context.sink) == TG_OK;
}

bool trial_open_backward(struct trial *trial, const struct trial *forward)
{
    const struct spec *spec = forward->spec;
    if (open_direction(trial, spec, spec_variant(spec)->backward, spec->backward) &&
        tap_expect(take_inputs(&trial->problem, &forward->problem), "inputs: %s", log_text()) &&
        fill_inputs(&trial->problem, spec))
        return true;
    trial_close(trial);
    return false;
}

void take_states(tg_shape_class *class, const tg_shape_class *states)
{
    class->pooled = states->pooled;
    class->state = states->state;
    class->values_first = states->values_first;
    class->packed |= states->packed;
    class->counted = states->counted;
}

static bool direction_is_accepted(const struct spec *spec, const tg_variant *variant, const char *text,
                                  const tg_shape_class *states)
{
    struct trial trial = {.spec = spec};
    tg_schedule schedule;
    bool is = make_problem(&trial, variant);
    if (is) {
        const tg_target *target = target_of(variant, text);
        tg_shape_class class = tg_shape_class_of(&trial.problem.shape, spec->io);
        is = (target == own_target || on_emulator()) &&
             schedule_from_text(&machine_context, variant, target, &class, NULL, text, &schedule);
        class.tokens = is ? schedule.max_tokens : 0;
        if (states)
            take_states(&class, states);
        is = is && tg_plan_check(&schedule, target, &class, &log_sink) == TG_OK;
    }
    tg_problem_free(&trial.problem);
    return is;
}

bool spec_is_accepted(const struct spec *spec, const tg_shape_class *states)
{
    const tg_variant *variant = spec_variant(spec);
    machine_context.sink = log_sink;
    log_clear();
    return direction_is_accepted(spec, variant, spec->schedule, states) &&
           (!spec->backward || direction_is_accepted(spec, variant->backward, spec->backward, states));
}

void trial_close(struct trial *trial)
{
    use_target(own_target);
    trial->kernel = (struct kernel){.program = NULL}; /* the harness's: others may want it */
    tg_problem_free(&trial->problem);
    free(trial->slot);
    trial->slot = NULL;
}

void try_declared(const tg_algorithm *algorithm, const tg_schedule *schedule, struct spec spec)
{
    const tg_schedule *const schedules[] = {schedule, NULL};
    const char *const aliases[] = {NULL};
    const tg_variant variant = {TG_HEADER(tg_variant), .name = algorithm->name, .aliases = aliases,
                                .algorithm = algorithm, .schedules = schedules};
    spec.own = &variant;
    spec.variant = algorithm->name;
    spec.io = TG_BF16;
    spec.batch = 1;
    spec.schedule = schedule->name;
    try_both_ways(&spec, 7);
}

void expect_refused(const tg_schedule *schedule, const char *code, const char *fragment)
{
    const tg_shape_class shape = {.io = TG_BF16, .dqk = 64, .dhv = 64, .group = 2};
    log_clear();
    tap_expect(tg_plan_check(schedule, tg_target_find("sm_90a"), &shape, &log_sink) != TG_OK, "it is accepted");
    tap_expect(strstr(log_text(), code) && strstr(log_text(), fragment), "expected %s \"%s\", found: %s", code,
               fragment, log_text());
}
