/* tests/kernels/harness.c */
#include "harness.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/tegula_emu.h"

/* Guards lie on both sides of a tensor. 0xff is a NaN in every type; 0xa5 a number nobody computes.
 */
enum {
    GUARD = 4096,
    CANARY = 0xa5,
    POISON = 0xff,
    WORKSPACE_ALIGNMENT = 256,
    MAX_RANK = 2 + TG_MAX_AXES
};

struct context machine_context;

/* ---- the device ---- */

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

bool harness_open(const char *device)
{
    context_init(&machine_context);
    machine_context.options.device = device;
    machine_context.options.no_cache = true;
    machine_context.options.no_wisdom = true;
    if (!machine_open(&machine_context))
        return false;
    printf("# %s, kernels for %s\n", machine_context.machine.device.name,
           machine_context.machine.target->arch);
    return true;
}

void harness_close(void)
{
    context_close(&machine_context);
}

bool on_emulator(void)
{
    return machine_context.machine.is_emulator;
}

void emulator_seed(uint64_t seed)
{
    void (*get)(struct tgemu_config *);
    int (*set)(const struct tgemu_config *);
    struct tgemu_config config = {.struct_size = sizeof config};
    if (!machine_context.emulator)
        return;
    *(void **)&get = dlsym(machine_context.emulator, "tgemu_get_config");
    *(void **)&set = dlsym(machine_context.emulator, "tgemu_configure");
    get(&config);
    config.seed = seed;
    set(&config);
}

void emulator_reset(void)
{
    void (*reset)(void);
    if (!machine_context.emulator)
        return;
    *(void **)&reset = dlsym(machine_context.emulator, "tgemu_reset");
    reset();
}

/* ---- tensors on the host ---- */

struct host_tensor *tensor_of(struct problem *problem, const char *name)
{
    for (uint32_t i = 0; i < problem->n_tensors; i++)
        if (strcmp(problem->tensors[i].name, name) == 0)
            return &problem->tensors[i];
    return NULL;
}

void *tensor_copy(struct problem *problem, const char *name)
{
    const struct host_tensor *tensor = tensor_of(problem, name);
    void *copy = malloc(tensor->bytes + 1);
    if (copy && tensor->data)
        memcpy(copy, tensor->data, tensor->bytes);
    return copy;
}

void tensor_drop(struct problem *problem, const char *name)
{
    struct host_tensor *tensor = tensor_of(problem, name);
    free(tensor->data);
    tensor->data = NULL;
}

static double gate(const struct spec *spec, bool is_forget, struct num_random random, size_t index)
{
    const size_t tokens = (size_t)(spec->tokens ? spec->tokens : 1);
    const double bias = 3.0 * (double)(index / tokens % (size_t)spec->heads % 3);
    switch (spec->gates) {
    case ORDINARY:
        return num_normal(random, index) + (is_forget ? bias : 0);
    case DECAY:
        return num_normal(random, index) - (is_forget ? 8 : 0);
    case EXTREME:
        return num_bits(random, index) & 1 ? 30 : -30;
    case OPEN:
        return 30;
    case CLOSED:
        return -30;
    }
    return 0;
}

static void fill(const struct host_tensor *tensor, const struct spec *spec)
{
    const struct num_random random = {7, num_stream(tensor->name)};
    const bool is_forget = strcmp(tensor->name, "f") == 0;
    const bool is_gate = is_forget || strcmp(tensor->name, "i") == 0;
    const bool is_shared = spec->layout == SHARED && strcmp(tensor->name, "k") == 0;
    const size_t n_heads = (size_t)(spec->batch * spec->heads);
    const size_t head = n_heads > 0 ? tensor->n / n_heads : 0; /* elements of one head */
    for (size_t e = 0; e < tensor->n; e++) {
        const size_t sequence = head ? e / (head * (size_t)spec->heads) : 0;
        const size_t from = is_shared ? sequence * head * (size_t)spec->heads + e % head : e;
        num_store(tensor->data, tensor->dtype, e,
                  is_gate ? gate(spec, is_forget, random, e) : num_normal(random, from));
    }
}

bool trial_inputs(struct problem *problem, const struct spec *spec)
{
    const struct shape shape = {.batch = spec->batch,
                                .heads = spec->heads,
                                .tokens = spec->tokens,
                                .dqk = spec->dqk,
                                .dhv = spec->dhv};
    if (!problem_layout(&machine_context, &tg_mlstm_sig, &shape, spec->io, problem))
        return tap_expect(false, "no layout");
    if (spec->scale > 0)
        problem->scale = spec->scale;
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        struct host_tensor *tensor = &problem->tensors[i];
        if (!(tensor->flags & TG_IN) || (!spec->has_s0 && strcmp(tensor->name, "S0") == 0))
            continue;
        tensor->data = malloc(tensor->bytes + 1);
        if (!tensor->data)
            return tap_expect(false, "no memory for %s", tensor->name);
        fill(tensor, spec);
    }
    return true;
}

bool trial_open(struct trial *trial, const struct spec *spec)
{
    const tg_target *target = machine_context.machine.target;
    const tg_shape_class class = {
        .io = spec->io, .dqk = (uint32_t)spec->dqk, .dhv = (uint32_t)spec->dhv};
    tg_schedule schedule;
    *trial = (struct trial){.layout = spec->layout, .chunk = spec->chunk};
    machine_context.sink = log_sink;
    log_clear();
    if (!schedule_from_text(&machine_context, &tg_mlstm_sig, target, &class, spec->schedule,
                            &schedule))
        return tap_expect(false, "schedule '%s': %s", spec->schedule, log_text());
    if (!kernel_build(&machine_context, &tg_mlstm_sig, &schedule, &class, &trial->kernel,
                      &log_sink))
        return tap_expect(false, "build: %s", log_text());
    if (trial_inputs(&trial->problem, spec))
        return true;
    trial_close(trial);
    return false;
}

void trial_close(struct trial *trial)
{
    kernel_free(&trial->kernel);
    problem_free(&trial->problem);
}

/* ---- tensors on the device ---- */

struct device_tensor {
    const struct host_tensor *host;
    uint64_t base;
    unsigned char *image; /* what lies there, guards included */
    size_t guard, bytes;  /* bytes: with both guards */
    int64_t stride[MAX_RANK];
};

static void set_contiguous(const struct host_tensor *host, int64_t *stride)
{
    int64_t step = 1;
    for (int i = host->rank; i-- > 0;) {
        stride[i] = step;
        step *= host->extent[i];
    }
}

static void set_strides(enum layout layout, const struct host_tensor *host, int64_t *stride)
{
    /* Rows of a matrix start at multiples of 16 bytes; gates may lie at any distance. */
    const int64_t unit = 16 / (int64_t)st_dtype_bytes(host->dtype);
    const bool is_matrix = host->rank > 3;
    set_contiguous(host, stride);
    if (layout == TOKENS && host->has_tokens) {
        const int64_t width = is_matrix ? host->extent[3] : 1;
        stride[0] = host->extent[2] * host->extent[1] * width;
        stride[1] = width;
        stride[2] = host->extent[1] * width;
    }
    if (layout == SHARED && strcmp(host->name, "k") == 0)
        stride[1] = 0;
    if (layout != PADDED)
        return;
    stride[2] = is_matrix ? host->extent[3] + unit : 3;
    stride[1] = stride[2] * host->extent[2] + (is_matrix ? 2 * unit : 5);
    stride[0] = stride[1] * host->extent[1] + (is_matrix ? 3 * unit : 7);
}

static size_t offset_of(const struct device_tensor *device, size_t element)
{
    int64_t offset = 0;
    for (int i = device->host->rank; i-- > 0;) {
        offset += (int64_t)(element % (size_t)device->host->extent[i]) * device->stride[i];
        element /= (size_t)device->host->extent[i];
    }
    return device->guard + (size_t)offset * st_dtype_bytes(device->host->dtype);
}

/* On the emulator an access beyond an allocation is found where it happens, so guards there are
 * for the padded layout only, whose gaps lie inside the allocation. */
static size_t guard_of(enum layout layout)
{
    return on_emulator() && layout != PADDED ? 0 : GUARD;
}

/* The image: inputs with NaN around them, outputs poisoned with a number around them. */
static bool image_open(struct device_tensor *device, const struct host_tensor *host,
                       enum layout layout)
{
    const size_t element = st_dtype_bytes(host->dtype);
    *device = (struct device_tensor){.host = host, .guard = guard_of(layout)};
    set_strides(layout, host, device->stride);
    const size_t last = host->n ? offset_of(device, host->n - 1) + element : device->guard;
    device->bytes = last + device->guard;
    device->image = malloc(device->bytes + 1);
    if (!device->image)
        return false;
    memset(device->image, host->flags & TG_IN ? POISON : CANARY, device->bytes);
    for (size_t e = 0; e < host->n; e++) {
        unsigned char *to = device->image + offset_of(device, e);
        if (host->flags & TG_IN)
            memcpy(to, (const char *)host->data + e * element, element);
        else
            memset(to, POISON, element);
    }
    return true;
}

/* Takes the elements out of the image; what remains must be what was there before the launch. */
static void image_read(struct device_tensor *device, char *to)
{
    const size_t element = st_dtype_bytes(device->host->dtype);
    const bool is_input = device->host->flags & TG_IN;
    const int fill_byte = is_input ? POISON : CANARY;
    size_t n_touched = 0, first = 0;
    for (size_t e = 0; e < device->host->n; e++) {
        unsigned char *from = device->image + offset_of(device, e);
        if (is_input)
            tap_expect(memcmp(from, (const char *)device->host->data + e * element, element) == 0,
                       "input %s was changed at element %zu", device->host->name, e);
        else
            memcpy(to + e * element, from, element);
    }
    for (size_t e = 0; e < device->host->n; e++)
        memset(device->image + offset_of(device, e), fill_byte, element);
    for (size_t i = device->bytes; i-- > 0;)
        if (device->image[i] != fill_byte) {
            n_touched++;
            first = i;
        }
    tap_expect(n_touched == 0, "%s: %zu bytes outside the tensor were written, the first at %lld",
               device->host->name, n_touched, (long long)first - (long long)device->guard);
}

struct device_call {
    struct device_tensor tensors[TG_MAX_TENSORS];
    tg_tensor_arg args[TG_MAX_TENSORS];
    uint32_t n;
    uint64_t workspace; /* base, a guard before it */
    size_t workspace_bytes, guard;
};

static tg_status call_tensor(struct device_call *call, const struct trial *trial,
                             const struct host_tensor *host)
{
    const tg_driver *driver = machine_context.machine.driver;
    struct device_tensor *device = &call->tensors[call->n];
    tg_tensor_arg *arg = &call->args[call->n];
    const bool is_absent =
        host->flags & TG_IN ? !host->data : trial->without_final && strcmp(host->name, "S") == 0;
    *arg = (tg_tensor_arg){.name = host->name};
    if (is_absent)
        return TG_OK;
    call->n++;
    if (!image_open(device, host, trial->layout))
        return TG_E_MEMORY;
    tg_status status = tg_memory_alloc(driver, device->bytes, &device->base, &log_sink);
    if (status == TG_OK)
        status = tg_memory_in(driver, device->base, device->image, device->bytes, &log_sink);
    arg->address = device->base + device->guard;
    if (trial->layout != HEADS)
        memcpy(arg->stride, device->stride, sizeof arg->stride);
    return status;
}

/* On the emulator the workspace stays unwritten, so that reading it too early is found out. */
static tg_status call_workspace(struct device_call *call, const struct trial *trial,
                                const tg_sizes *sizes)
{
    const tg_driver *driver = machine_context.machine.driver;
    const uint64_t bytes = tg_workspace_bytes(trial->kernel.program, sizes);
    call->guard = guard_of(trial->layout);
    call->workspace_bytes = bytes + 2 * call->guard;
    tg_status status = tg_memory_alloc(driver, call->workspace_bytes, &call->workspace, &log_sink);
    if (status != TG_OK || call->guard == 0)
        return status;
    if (!on_emulator())
        status = tg_memory_fill(driver, call->workspace, POISON, call->workspace_bytes, &log_sink);
    if (status == TG_OK)
        status = tg_memory_fill(driver, call->workspace, CANARY, call->guard, &log_sink);
    return status == TG_OK ? tg_memory_fill(driver, call->workspace + call->guard + bytes, CANARY,
                                            call->guard, &log_sink)
                           : status;
}

static tg_status check_workspace(const struct device_call *call)
{
    unsigned char bytes[2][GUARD];
    const tg_driver *driver = machine_context.machine.driver;
    if (call->guard == 0)
        return TG_OK;
    tg_status status = tg_memory_out(driver, bytes[0], call->workspace, call->guard, &log_sink);
    if (status == TG_OK)
        status =
            tg_memory_out(driver, bytes[1], call->workspace + call->workspace_bytes - call->guard,
                          call->guard, &log_sink);
    for (size_t i = 0; status == TG_OK && i < 2 * call->guard; i++)
        if (!tap_expect(bytes[i / GUARD][i % GUARD] == CANARY,
                        "a byte %s the workspace was written", i < GUARD ? "before" : "after"))
            break;
    return status;
}

static tg_status call_fetch_all(struct device_call *call, struct problem *problem)
{
    tg_status status = check_workspace(call);
    for (uint32_t i = 0; i < call->n && status == TG_OK; i++) {
        struct device_tensor *device = &call->tensors[i];
        struct host_tensor *host = tensor_of(problem, device->host->name);
        if (host->flags & TG_OUT && !host->data)
            host->data = malloc(host->bytes + 1);
        status = tg_memory_out(machine_context.machine.driver, device->image, device->base,
                               device->bytes, &log_sink);
        if (status == TG_OK)
            image_read(device, host->data);
    }
    return status;
}

static void call_free(struct device_call *call)
{
    for (uint32_t i = 0; i < call->n; i++) {
        tg_memory_free(machine_context.machine.driver, call->tensors[i].base);
        free(call->tensors[i].image);
    }
    tg_memory_free(machine_context.machine.driver, call->workspace);
}

tg_status trial_run(struct trial *trial)
{
    struct device_call call = {.n = 0};
    struct problem *problem = &trial->problem;
    const struct shape *shape = &problem->shape;
    const tg_sizes sizes = {shape->batch, shape->heads, shape->tokens, trial->chunk};
    const float scale = (float)problem->scale;
    tg_status status = TG_OK;
    log_clear();
    status = tg_sizes_check(trial->kernel.program, &sizes, &log_sink);
    for (uint32_t i = 0; i < problem->n_tensors && status == TG_OK; i++)
        status = call_tensor(&call, trial, &problem->tensors[i]);
    if (status == TG_OK)
        status = call_workspace(&call, trial, &sizes);
    if (status == TG_OK)
        status = tg_launch(trial->kernel.module, &sizes, &scale, call.args, call.n,
                           call.workspace + call.guard, NULL, &log_sink);
    if (status == TG_OK)
        status = tg_synchronize(machine_context.machine.driver, &log_sink);
    if (status == TG_OK)
        status = call_fetch_all(&call, problem);
    call_free(&call);
    return status;
}

bool trial_runs(struct trial *trial)
{
    tg_status status = trial_run(trial);
    tap_expect(status == TG_OK, "%s: %s", tg_status_name(status), log_text());
    if (status != TG_OK)
        emulator_reset();
    return status == TG_OK;
}

/* ---- comparison ---- */

/* Beside the limits of DESIGN section 4, which cli/oracle.c keeps and explains:
 * f16 operands have 11 bits where bf16 have 8, so 4e-3 / 8 = 5e-4 is what the same roundings give;
 * 1e-3 leaves room for a state that outgrows the fine part of f16's range. */
static const double rms_f16 = 1e-3;
/* A head's own RMS may be far below the tensor's, and with few tokens a head is a small sample
 * whose error scatters: 3 is what is left of 4e-3 over the expected 2.5e-3, twice. */
static const double head_slack = 3;

static double rms_of(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum / (double)n);
}

static bool head_right(const struct host_tensor *tensor, const double *truth, tg_dtype io,
                       double limit, int64_t head, bool is_told)
{
    const size_t n = tensor->n / (size_t)(tensor->extent[0] * tensor->extent[1]);
    const size_t at = (size_t)head * n;
    const char *data = (const char *)tensor->data + at * st_dtype_bytes(tensor->dtype);
    const struct tensor_error error = num_compare((struct num_const_array){data, tensor->dtype, n},
                                                  (struct num_const_array){truth + at, ST_F64, n});
    /* f16 has nothing below 2^-24: weighted keys of closed gates are zero there, and so is a state
     * that is made of nothing else. */
    const bool is_below_f16 = io == TG_F16 && rms_of(truth + at, n) < 0x1p-24;
    const bool ok = !error.finite_mismatch && (is_below_f16 || error.rms_ratio <= limit);
    if (is_told)
        tap_expect(ok, "%s of head %lld: rms %.2e, at most %.2e%s", tensor->name, (long long)head,
                   error.rms_ratio, limit, error.finite_mismatch ? "; not finite" : "");
    return ok;
}

static bool output_right(const struct problem *problem, const struct host_tensor *tensor,
                         const double *truth, bool is_told)
{
    struct verdict v = judge(problem, tensor, (struct num_const_array){truth, ST_F64, tensor->n},
                             (struct levels){0, 0});
    if (problem->io == TG_F16) {
        v.rms_limit = rms_f16;
        v.ok &= v.error.rms_ratio <= rms_f16;
    }
    bool ok = v.ok;
    if (is_told)
        tap_expect(v.ok, "%s: rms %.2e of at most %.2e, max %.2e of at most %.2e, worst at %lld%s",
                   v.name, v.error.rms_ratio, v.rms_limit, v.error.max_ratio, v.max_limit,
                   (long long)v.error.worst_index, v.error.finite_mismatch ? "; not finite" : "");
    for (int64_t head = 0; tensor->n && head < tensor->extent[0] * tensor->extent[1]; head++)
        ok &= head_right(tensor, truth, problem->io, head_slack * v.rms_limit, head, is_told);
    return ok;
}

bool outputs_right(struct problem *problem, bool is_told)
{
    struct truth truth;
    bool ok = true;
    if (!truth_compute(&machine_context, problem, &truth))
        return tap_expect(false, "no oracle: %s", log_text());
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const struct host_tensor *tensor = &problem->tensors[i];
        if (tensor->flags & TG_OUT && tensor->data)
            ok &= output_right(problem, tensor, truth.out[tensor->tile], is_told);
    }
    truth_free(&truth);
    return ok;
}
