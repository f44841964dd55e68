/* torch/torch.c - the kernels of all operators are one, which reads off the stack what the operator declares.
 *
 * A boxed kernel knows nothing but its stack, so there is one function a number, and a table of operators beside it; its
 * text comes from a macro. An error leaves as an exception of C++, which libtorch throws, through frames that have nothing
 * to clean up any more. */
#include "torch/torch.h"

#include "program/fail.h"
#include "torch/libtorch.h"
#include "torch/plans.h"
#include "torch/tensor.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct libtorch torch;
static tg_torch_host host;
static tg_torch_operator operators[TG_TORCH_OPERATORS];
static uint32_t n_operators;
static atomic_bool cpu_is_emulator;
static const char *const keys[] = {"CPU", "CUDA"};
enum { N_KEYS = sizeof keys / sizeof *keys };
static library_handle libraries[N_KEYS];

struct call {
    const tg_torch_operator *of;
    tensor_handle inputs[TG_TORCH_TENSORS], outputs[TG_TORCH_TENSORS], workspace;
    int32_t device_type, device_index; /* of what it makes */
    tg_torch_call seen;
    struct plan_key key;
    tg_torch_plan plan;
};

static bool refuse(struct call *c, const char *what)
{
    snprintf(c->seen.message, sizeof c->seen.message, "%s: %s", c->of->name, what);
    return false;
}

/* ---- off the stack, and onto it ---- */

static tensor_handle take_tensor(stable_value value, bool is_optional)
{
    stable_value *const in = (stable_value *)(uintptr_t)value;
    if (!is_optional)
        return (tensor_handle)in;
    const tensor_handle tensor = in ? (tensor_handle)(uintptr_t)*in : NULL;
    if (in)
        torch.free_value(in);
    return tensor;
}

static double take_number(stable_value value)
{
    stable_value *const in = (stable_value *)(uintptr_t)value;
    double number = NAN;
    if (in) {
        memcpy(&number, in, sizeof number);
        torch.free_value(in);
    }
    return number;
}

static void take(struct call *c, const stable_value *stack)
{
    const tg_torch_operator *const of = c->of;
    for (uint32_t i = 0; i < of->n_inputs; i++)
        c->inputs[i] = take_tensor(*stack++, of->optional >> i & 1);
    for (uint32_t i = 0; i < of->n_scalars; i++)
        c->seen.scalars[i] = take_number(*stack++);
    for (uint32_t i = 0; i < of->n_options; i++)
        c->seen.options[i] = (int64_t)*stack++;
    for (uint32_t i = 0; i < of->n_outputs; i++)
        c->outputs[i] = of->takes_outputs ? take_tensor(*stack++, true) : NULL;
    c->workspace = of->takes_outputs ? take_tensor(*stack, true) : NULL;
}

static void drop(tensor_handle tensor)
{
    if (tensor)
        (void)torch.aoti_torch_delete_tensor_object(tensor);
}

/* What the caller does not get. */
static void leave(struct call *c, bool has_results)
{
    for (uint32_t i = 0; i < c->of->n_inputs; i++)
        drop(c->inputs[i]);
    for (uint32_t i = 0; i < c->of->n_outputs && !has_results; i++)
        drop(c->outputs[i]);
    drop(c->workspace);
}

/* ---- what a tensor is like ---- */

static bool describe(struct call *c, tensor_handle tensor, tg_torch_tensor *to)
{
    const char *why = NULL;
    if (!tensor_describe(&torch, tensor, to, &why))
        return refuse(c, why);
    if (to->rank >= 0 && to->device >= 0) {
        c->device_type = torch.aoti_torch_device_type_cuda();
        c->device_index = to->device;
    } else if (atomic_load(&cpu_is_emulator)) {
        to->device = TG_TORCH_EMULATOR;
    }
    return true;
}

static bool make_dense(struct call *c, uint32_t input)
{
    const tg_torch_tensor *const t = &c->seen.inputs[input];
    const tensor_handle from = c->inputs[input];
    int64_t strides[TG_TORCH_RANK];
    int32_t dtype = 0, type = 0, index = 0;
    tensor_handle made = NULL;
    tensor_dense_strides(t->rank, t->sizes, strides);
    if (torch.aoti_torch_get_dtype(from, &dtype) || torch.aoti_torch_get_device_type(from, &type) ||
        torch.aoti_torch_get_device_index(from, &index) ||
        torch.aoti_torch_empty_strided(t->rank, t->sizes, strides, dtype, type, index, &made) ||
        torch.aoti_torch_copy_(made, from, 0)) {
        drop(made);
        return refuse(c, "cannot make a dense copy of an argument");
    }
    drop(from);
    c->inputs[input] = made;
    return describe(c, made, &c->seen.inputs[input]);
}

static bool look_at_inputs(struct call *c)
{
    const tg_torch_operator *const of = c->of;
    for (uint32_t i = 0; i < of->n_inputs; i++) {
        const tg_torch_tensor *const t = &c->seen.inputs[i];
        if (!describe(c, c->inputs[i], &c->seen.inputs[i]))
            return false;
        if (t->rank < 0 || of->written >> i & 1)
            continue;
        const bool is_good =
            t->device == TG_TORCH_HOST ? tensor_is_dense(t) : !(of->rows >> i & 1) || tensor_has_good_rows(t);
        if (!is_good && !make_dense(c, i))
            return false;
    }
    for (uint32_t i = 0; i < of->n_outputs; i++)
        if (!describe(c, c->outputs[i], &c->seen.outputs[i]))
            return false;
    return describe(c, c->workspace, &c->seen.workspace);
}

/* ---- the plan ---- */

static void add_tensor(struct plan_key *key, const tg_torch_tensor *t)
{
    key->words[key->n++] = t->rank;
    if (t->rank < 0)
        return;
    key->words[key->n++] = t->dtype;
    key->words[key->n++] = t->device;
    for (int32_t i = 0; i < t->rank; i++) {
        key->words[key->n++] = t->sizes[i];
        key->words[key->n++] = t->strides[i];
    }
}

static void make_key(struct call *c)
{
    const tg_torch_operator *const of = c->of;
    struct plan_key *const key = &c->key;
    key->n = 0;
    key->words[key->n++] = c->seen.number;
    memcpy(&key->words[key->n], c->seen.scalars, of->n_scalars * sizeof c->seen.scalars[0]);
    key->n += of->n_scalars;
    memcpy(&key->words[key->n], c->seen.options, of->n_options * sizeof c->seen.options[0]);
    key->n += of->n_options;
    for (uint32_t i = 0; i < of->n_inputs; i++)
        add_tensor(key, &c->seen.inputs[i]);
    for (uint32_t i = 0; i < of->n_outputs && of->takes_outputs; i++)
        add_tensor(key, &c->seen.outputs[i]);
}

static bool find_plan(struct call *c)
{
    make_key(c);
    if (plans_find(&c->key, &c->plan))
        return true;
    memset(&c->plan, 0, sizeof c->plan);
    if (host.plan(&c->seen, &c->plan, c->seen.message))
        return false;
    plans_add(&c->key, &c->plan);
    return true;
}

/* ---- memory ---- */

static bool make(struct call *c, int32_t dtype, int32_t rank, const int64_t *sizes, tensor_handle *made)
{
    int64_t strides[TG_TORCH_RANK], bytes = dtype == TG_F32 ? 4 : dtype == TG_TORCH_U8 ? 1 : 2;
    tensor_dense_strides(rank, sizes, strides);
    if (torch.aoti_torch_empty_strided(rank, sizes, strides, tensor_torch_dtype(&torch, dtype), c->device_type,
                                       c->device_index, made) == 0)
        return true;
    *made = NULL;
    for (int32_t i = 0; i < rank; i++)
        bytes *= sizes[i];
    /* Programs look for these words. */
    snprintf(c->seen.message, sizeof c->seen.message, "%sout of memory. Tried to allocate %lld bytes for %s",
             c->device_type == torch.aoti_torch_device_type_cuda() ? "CUDA " : "", (long long)bytes, c->of->name);
    return false;
}

/* An operator that returns outputs returns all: those that nobody wants are empty, and the host does not see them. */
static bool make_output(struct call *c, uint32_t i)
{
    const tg_torch_output *const of = &c->plan.outputs[i];
    const int64_t none = 0;
    if (of->dtype)
        return make(c, of->dtype, of->rank, of->sizes, &c->outputs[i]) &&
               describe(c, c->outputs[i], &c->seen.outputs[i]);
    return c->of->takes_outputs || make(c, TG_F32, 1, &none, &c->outputs[i]);
}

static bool make_outputs(struct call *c)
{
    for (uint32_t i = 0; i < c->of->n_outputs; i++)
        if (!c->outputs[i] && !make_output(c, i))
            return false;
    return true;
}

static bool make_workspace(struct call *c)
{
    const tg_torch_tensor *const given = &c->seen.workspace;
    if (!c->plan.workspace)
        return true;
    if (given->rank < 0)
        return make(c, TG_TORCH_U8, 1, &(int64_t){(int64_t)c->plan.workspace}, &c->workspace) &&
               describe(c, c->workspace, &c->seen.workspace);
    if (given->rank == 1 && given->dtype == TG_TORCH_U8 && given->sizes[0] >= (int64_t)c->plan.workspace &&
        (given->strides[0] == 1 || given->sizes[0] < 2))
        return true;
    snprintf(c->seen.message, sizeof c->seen.message,
             "TG0826 workspace: expected a uint8 tensor of %llu elements, found another",
             (unsigned long long)c->plan.workspace);
    return false;
}

/* ---- the launch ---- */

/* The first error is the exception's text. */
static void say(void *user, const tg_diag *diag)
{
    struct call *const c = user;
    if (diag->severity == TG_ERROR && !c->seen.message[0])
        snprintf(c->seen.message, sizeof c->seen.message, "%s %s", diag->code, diag->message);
}

/* A thread of PyTorch's may not have had a context yet; then its device is switched by a guard of PyTorch's. */
static bool enter(struct call *c, const tg_sink *sink)
{
    static _Thread_local struct {
        const tg_driver *driver;
        int32_t ordinal;
    } entered;
    if (entered.driver == c->plan.driver && entered.ordinal == c->plan.ordinal)
        return true;
    if (tg_context_acquire(c->plan.driver, c->plan.ordinal, sink) != TG_OK)
        return false;
    entered.driver = c->plan.driver;
    entered.ordinal = c->plan.ordinal;
    return true;
}

static bool launch(struct call *c)
{
    tg_torch_plan *const plan = &c->plan;
    const tg_sink sink = {say, c};
    for (uint32_t i = 0; i < plan->n_args; i++)
        plan->args[i].address = plan->sources[i] < TG_TORCH_TENSORS
                                    ? c->seen.inputs[plan->sources[i]].address
                                    : c->seen.outputs[plan->sources[i] - TG_TORCH_TENSORS].address;
    c->seen.message[0] = 0;
    const uint64_t workspace = c->seen.workspace.rank < 0 ? 0 : c->seen.workspace.address;
    return enter(c, &sink) && tg_launch(plan->module, &plan->sizes, plan->has_scalars ? plan->scalars : NULL,
                                        plan->args, plan->n_args, workspace, c->seen.stream, &sink) == TG_OK;
}

static bool run_here(struct call *c)
{
    return find_plan(c) && make_outputs(c) && make_workspace(c) &&
           (c->plan.module ? launch(c) : host.run(&c->seen, c->seen.message) == 0);
}

static bool run_on_gpu(struct call *c)
{
    guard_handle guard;
    if (!torch.aoti_torch_create_cuda_guard || !torch.aoti_torch_delete_cuda_guard ||
        !torch.aoti_torch_get_current_cuda_stream || torch.aoti_torch_create_cuda_guard(c->device_index, &guard))
        return refuse(c, "PyTorch cannot switch to the device of the tensors");
    const bool ok = torch.aoti_torch_get_current_cuda_stream(c->device_index, &c->seen.stream)
                        ? refuse(c, "PyTorch has no current stream on the device")
                        : run_here(c);
    (void)torch.aoti_torch_delete_cuda_guard(guard);
    return ok;
}

/* Yields whether the results are on the stack; else `message` says why not. */
static bool run(uint32_t number, stable_value *stack, char message[TG_TORCH_MESSAGE])
{
    struct call c; /* most of it is not used: no initialiser */
    c.of = &operators[number];
    c.seen.number = number;
    c.seen.stream = NULL;
    c.seen.message[0] = 0;
    c.device_type = 0; /* the CPU */
    c.device_index = 0;
    take(&c, stack);
    const bool ok = look_at_inputs(&c) && (c.device_type ? run_on_gpu(&c) : run_here(&c));
    const bool has_results = ok && !c.of->takes_outputs;
    for (uint32_t i = 0; i < c.of->n_outputs && has_results; i++)
        stack[i] = (uintptr_t)c.outputs[i];
    leave(&c, has_results);
    if (!ok)
        memcpy(message, c.seen.message, TG_TORCH_MESSAGE);
    return ok;
}

static void run_or_throw(uint32_t number, stable_value *stack)
{
    char message[TG_TORCH_MESSAGE];
    if (!run(number, stack, message))
        torch.aoti_torch_check(false, operators[number].name, __FILE__, __LINE__, message);
}

/* ---- a function for every number ---- */

/* In octal: each digit is a step. */
#define EACH_8(F, n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7)
#define EACH_64(F, n)                                                                                                  \
    EACH_8(F, n##0)                                                                                                    \
    EACH_8(F, n##1) EACH_8(F, n##2) EACH_8(F, n##3) EACH_8(F, n##4) EACH_8(F, n##5) EACH_8(F, n##6) EACH_8(F, n##7)
#define EACH_512(F)                                                                                                    \
    EACH_64(F, 00)                                                                                                     \
    EACH_64(F, 01) EACH_64(F, 02) EACH_64(F, 03) EACH_64(F, 04) EACH_64(F, 05) EACH_64(F, 06) EACH_64(F, 07)
#define BOXED(n)                                                                                                       \
    static void boxed_##n(stable_value *stack, uint64_t n_arguments, uint64_t n_results)                               \
    {                                                                                                                  \
        (void)n_arguments;                                                                                             \
        (void)n_results;                                                                                               \
        run_or_throw(n, stack);                                                                                        \
    }
#define NAME_OF(n) boxed_##n,
EACH_512(BOXED)
static boxed_kernel *const boxed[] = {EACH_512(NAME_OF)};
_Static_assert(sizeof boxed / sizeof *boxed == TG_TORCH_OPERATORS, "a function for every operator");

/* ---- what the host calls ---- */

tg_status tg_torch_open(const tg_torch_host *of, const tg_sink *sink)
{
    host = *of;
    const tg_status status = libtorch_find(&torch, sink);
    for (uint32_t i = 0; i < N_KEYS && status == TG_OK; i++)
        if (torch.aoti_torch_library_init_impl("tegula", keys[i], __FILE__, __LINE__, &libraries[i]))
            return tg_fail(sink, TG_E_UNSUPPORTED, "TG0834", NULL, "libtorch takes no implementations for %s", keys[i]);
    return status;
}

tg_status tg_torch_implement(const tg_torch_operator *of, uint32_t *number, const tg_sink *sink)
{
    if (n_operators == TG_TORCH_OPERATORS || of->n_inputs > TG_TORCH_TENSORS || of->n_outputs > TG_TORCH_TENSORS ||
        of->n_scalars > TG_MAX_SCALARS || of->n_options > TG_TORCH_OPTIONS)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0835", NULL,
                       "%s: expected at most %d operators, of %d tensors, found more", of->name, TG_TORCH_OPERATORS,
                       TG_TORCH_TENSORS);
    tg_torch_operator *const to = &operators[n_operators];
    *to = *of;
    to->name = strdup(of->name);
    if (!to->name)
        return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "out of host memory");
    for (uint32_t i = 0; i < N_KEYS; i++)
        if (torch.aoti_torch_library_impl(libraries[i], to->name, boxed[n_operators]))
            return tg_fail(sink, TG_E_UNSUPPORTED, "TG0834", NULL, "libtorch does not take the implementation of %s",
                           of->name);
    *number = n_operators++;
    return TG_OK;
}

uint32_t tg_torch_plans(void)
{
    return plans_count();
}

void tg_torch_forget(void)
{
    plans_forget();
}

void tg_torch_place_cpu(int is_emulator)
{
    atomic_store(&cpu_is_emulator, is_emulator != 0);
}
