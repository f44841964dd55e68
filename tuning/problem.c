/* tuning/problem.c - the tensors of a call on the host, with their names, types and extents.
 * Tensors are [B, NH, axes...] and contiguous; an axis of which there is one entry for all (the
 * batch of a parameter, or of the tokens of packed sequences) is 1 long. */
#include "tuning/tuning.h"

#include "program/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "variants/variants.h"

static tg_num_type st_of_dtype(tg_dtype dtype)
{
    return dtype == TG_BF16 ? TG_NUM_BF16 : dtype == TG_F16 ? TG_NUM_F16 : TG_NUM_F32;
}

static int rank_of(const uint8_t *axes)
{
    int rank = 2;
    while (rank < 2 + TG_MAX_AXES && axes[rank - 2] != TG_AXIS_NONE)
        rank++;
    return rank;
}

tg_host_tensor *tg_problem_tensor(tg_problem *problem, const char *name)
{
    for (uint32_t i = 0; i < problem->n_tensors; i++)
        if (strcmp(problem->tensors[i].name, name) == 0)
            return &problem->tensors[i];
    return NULL;
}

int tg_problem_scalar(const tg_problem *problem, const char *name)
{
    for (uint32_t i = 0; i < problem->n_scalars; i++)
        if (strcmp(problem->declared[i].name, name) == 0)
            return (int)i;
    return -1;
}

tg_status tg_problem_allocate(tg_host_tensor *tensor, const tg_sink *sink)
{
    free(tensor->data);
    tensor->data = malloc(tensor->bytes ? tensor->bytes : 1);
    if (tensor->data)
        return TG_OK;
    return tg_fail(sink, TG_E_MEMORY, "TG0799", "use a smaller shape", "no host memory for the %zu bytes of %s",
                   tensor->bytes, tensor->name);
}

void tg_problem_free(tg_problem *problem)
{
    for (uint32_t i = 0; i < problem->n_tensors; i++)
        free(problem->tensors[i].data);
    problem->n_tensors = 0;
    free(problem->cuts.at);
    problem->cuts = (tg_cuts){NULL, 0};
}

static uint32_t width_of(int64_t width)
{
    return width > 0 && width < UINT32_MAX ? (uint32_t)width : UINT32_MAX;
}

tg_sizes tg_sizes_of(const tg_shape *shape, int64_t chunk)
{
    return (tg_sizes){shape->batch, shape->heads, shape->tokens, chunk};
}

tg_shape_class tg_shape_class_of(const tg_shape *shape, tg_dtype io)
{
    return (tg_shape_class){.io = io,
                            .dqk = width_of(shape->dqk),
                            .dhv = width_of(shape->dhv),
                            .group = shape->group ? width_of(shape->group) : 1,
                            .tokens = shape->most_tokens ? width_of(shape->most_tokens) : 0,
                            .packed = shape->packed,
                            .pooled = shape->pooled,
                            .state = shape->state,
                            .values_first = shape->values_first};
}

/* ---- declarations ---- */

const tg_variant *tg_variant_forward(const tg_variant *variant)
{
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++)
        if ((*v)->backward == variant)
            return *v;
    return NULL;
}

static const tg_tensor *signature_tensor(const tg_variant *variant, const char *name)
{
    const tg_algorithm *algorithm = variant->algorithm;
    for (uint32_t tile = 1; tile < algorithm->n_tensors; tile++)
        if (algorithm->tensors[tile].flags & (TG_IN | TG_OUT) && strcmp(algorithm->tensors[tile].name, name) == 0)
            return &algorithm->tensors[tile];
    return NULL;
}

/* dX of a backward, where its forward has X; "dt" of Mamba-2 is none. */
static bool names_gradient(const tg_variant *forward, const char *name)
{
    return forward && name[0] == 'd' && signature_tensor(forward, name + 1);
}

static bool is_result(const tg_variant *forward, const char *name)
{
    const tg_tensor *tensor = forward ? signature_tensor(forward, name) : NULL;
    return tensor && tensor->flags & TG_OUT;
}

static tg_host_tensor declare(const tg_variant *variant, const tg_variant *forward, uint32_t tile, tg_dtype io)
{
    const tg_tensor *declared = &variant->algorithm->tensors[tile];
    tg_host_tensor tensor = {.name = declared->name, .tile = tile, .flags = declared->flags, .drawn = declared->drawn};
    tensor.dtype = declared->dtype == TG_IO ? st_of_dtype(io) : TG_NUM_F32;
    tensor.rank = rank_of(declared->axes);
    tensor.has_tokens = declared->axes[0] == TG_T;
    tensor.first_axis = declared->flags & TG_NO_BATCH ? 1 : 0;
    tensor.is_gradient = names_gradient(forward, declared->name);
    tensor.is_fed = declared->flags & TG_IN && is_result(forward, declared->name);
    return tensor;
}

static void declare_scalars(tg_problem *problem)
{
    static const tg_scalar scale_alone[] = {{"scale", 0}};
    const tg_algorithm *algorithm = problem->variant->algorithm;
    problem->declared = algorithm->n_scalars ? algorithm->scalars : scale_alone;
    problem->n_scalars = algorithm->n_scalars ? algorithm->n_scalars : 1;
    for (uint32_t i = 0; i < problem->n_scalars && i < TG_MAX_SCALARS; i++)
        problem->scalars[i] = (double)problem->declared[i].value;
    if (problem->scale == 0)
        problem->scale = NAN; /* by dqk, which is told later */
}

tg_status tg_problem_declare(const tg_variant *variant, const tg_variant *forward, tg_dtype io, tg_problem *problem,
                             const tg_sink *sink)
{
    const tg_algorithm *algorithm = variant->algorithm;
    if (!forward)
        forward = tg_variant_forward(variant);
    *problem = (tg_problem){.variant = variant, .io = io};
    declare_scalars(problem);
    for (uint32_t tile = 1; tile < algorithm->n_tensors; tile++) {
        const tg_tensor *declared = &algorithm->tensors[tile];
        if (!(declared->flags & (TG_IN | TG_OUT)))
            continue;
        if (problem->n_tensors == TG_MAX_TENSORS) {
            return tg_fail(sink, TG_E_DECLARATION, "TG0903", "split the algorithm",
                           "%s has more than %d inputs and outputs", variant->name, TG_MAX_TENSORS);
        }
        problem->tensors[problem->n_tensors++] = declare(variant, forward, tile, io);
    }
    return TG_OK;
}

/* ---- sizes ---- */

static int64_t extent_of(const tg_shape *shape, const tg_host_tensor *tensor, const uint8_t *axes, int axis)
{
    const int64_t group = shape->group ? shape->group : 1;
    if (axis == 0)
        return tensor->flags & TG_NO_BATCH || (shape->packed && axes[0] == TG_T) ? 1 : shape->batch;
    if (axis == 1)
        return tensor->flags & TG_NO_HEADS ? 1 : tensor->flags & TG_SHARED ? shape->heads / group : shape->heads;
    const uint8_t name = axes[axis - 2];
    return name == TG_T ? shape->tokens : name == TG_DQK ? shape->dqk : shape->dhv;
}

static tg_status set_bytes(tg_host_tensor *tensor, const tg_sink *sink)
{
    tensor->n = 1;
    for (int i = 0; i < tensor->rank; i++) {
        if (__builtin_mul_overflow(tensor->n, (size_t)tensor->extent[i], &tensor->n) || tensor->n > SIZE_MAX / 16) {
            return tg_fail(sink, TG_E_ARGUMENT, "TG0902", "use a smaller shape", "%s does not fit an address space",
                           tensor->name);
        }
    }
    tensor->bytes = tensor->n * tg_num_bytes(tensor->dtype);
    return TG_OK;
}

/* A state has the type that it has in device memory, and its declared order. */
static void set_state(const tg_shape *shape, const tg_tensor *declared, tg_host_tensor *tensor)
{
    if (!tg_tensor_is_state(declared))
        return;
    tensor->is_turned = shape->values_first && declared->axes[0] == TG_DQK;
    if (shape->state)
        tensor->dtype = st_of_dtype((tg_dtype)shape->state);
}

static tg_status no_memory_for_cuts(const tg_sink *sink)
{
    return tg_fail(sink, TG_E_MEMORY, "TG0799", "use fewer sequences", "no host memory for their boundaries");
}

tg_status tg_cuts_copy(const tg_cuts *from, tg_cuts *to, const tg_sink *sink)
{
    const size_t bytes = (size_t)(from->n + 1) * sizeof *from->at;
    *to = (tg_cuts){malloc(bytes), from->n};
    if (!to->at)
        return no_memory_for_cuts(sink);
    memcpy(to->at, from->at, bytes);
    return TG_OK;
}

/* For those who time: sequences of equal length, as far as T allows. */
static tg_status cut_evenly(tg_problem *problem, const tg_sink *sink)
{
    const tg_shape *shape = &problem->shape;
    tg_cuts *cuts = &problem->cuts;
    cuts->n = shape->batch;
    cuts->at = calloc((size_t)shape->batch + 1, sizeof *cuts->at);
    for (int64_t s = 0; cuts->at && s <= shape->batch; s++)
        cuts->at[s] = s == shape->batch ? shape->tokens : shape->tokens / shape->batch * s;
    return cuts->at ? TG_OK : no_memory_for_cuts(sink);
}

tg_status tg_shape_check(const tg_shape *shape, const tg_sink *sink)
{
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {
        {"batch", shape->batch}, {"heads", shape->heads}, {"tokens", shape->tokens},          {"dqk", shape->dqk},
        {"dhv", shape->dhv},     {"group", shape->group}, {"most_tokens", shape->most_tokens}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 0)
            return tg_fail(sink, TG_E_ARGUMENT, "TG0902", NULL, "shape: %s: expected at least 0, found %lld",
                           sizes[i].name, (long long)sizes[i].value);
    if (shape->group > 1 && shape->heads % shape->group != 0)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0902", "choose a group that divides NH",
                       "a group of %lld heads does not divide NH = %lld", (long long)shape->group,
                       (long long)shape->heads);
    return TG_OK;
}

tg_status tg_problem_size(const tg_shape *shape, tg_problem *problem, const tg_sink *sink)
{
    problem->shape = *shape;
    if (isnan(problem->scale))
        problem->scale = 1 / sqrt((double)shape->dqk);
    const tg_status checked = tg_shape_check(shape, sink);
    if (checked != TG_OK)
        return checked;
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        tg_host_tensor *tensor = &problem->tensors[i];
        const tg_tensor *declared = &problem->variant->algorithm->tensors[tensor->tile];
        const uint8_t *axes = declared->axes;
        if (memchr(axes, TG_CHUNK, TG_MAX_AXES)) {
            return tg_fail(sink, TG_E_DECLARATION, "TG0903", "give it the axes of positions, or none of them",
                           "%s has a row for each chunk, and how long those are only a schedule says", tensor->name);
        }
        for (int axis = 0; axis < tensor->rank; axis++)
            tensor->extent[axis] = extent_of(shape, tensor, axes, axis);
        set_state(shape, declared, tensor);
        const tg_status status = set_bytes(tensor, sink);
        if (status != TG_OK)
            return status;
    }
    return !shape->packed || problem->cuts.at ? TG_OK : cut_evenly(problem, sink);
}

tg_status tg_problem_layout(const tg_variant *variant, const tg_variant *forward, const tg_shape *shape, tg_dtype io,
                            tg_problem *problem, const tg_sink *sink)
{
    tg_status status = tg_problem_declare(variant, forward, io, problem, sink);
    if (status == TG_OK)
        status = tg_problem_size(shape, problem, sink);
    if (status != TG_OK)
        tg_problem_free(problem);
    return status;
}

tg_status tg_cuts_check(const char *label, const tg_cuts *cuts, int64_t tokens, const tg_sink *sink)
{
    static const char *const hint = "give where each sequence begins, then T: 0,5,5,40";
    const int64_t *at = cuts->at;
    if (at[0] != 0) {
        return tg_fail(sink, TG_E_ARGUMENT, "TG0904", hint, "%s: the boundaries begin with %lld, expected 0", label,
                       (long long)at[0]);
    }
    for (int64_t s = 0; s < cuts->n; s++)
        if (at[s + 1] < at[s]) {
            return tg_fail(sink, TG_E_ARGUMENT, "TG0904", hint, "%s: the boundaries fall from %lld to %lld", label,
                           (long long)at[s], (long long)at[s + 1]);
        }
    if (at[cuts->n] == tokens)
        return TG_OK;
    return tg_fail(sink, TG_E_ARGUMENT, "TG0904", hint, "%s: the boundaries end with %lld, expected T = %lld", label,
                   (long long)at[cuts->n], (long long)tokens);
}

/* ---- what one program leaves for another ---- */

static tg_status feed_one(const tg_host_tensor *from, tg_host_tensor *tensor, const tg_sink *sink)
{
    if (from->bytes != tensor->bytes || from->dtype != tensor->dtype) {
        return tg_fail(sink, TG_E_ARGUMENT, "TG0905", "give both schedules one chunk size with --chunk",
                       "%s: the forward left %zu bytes, the backward takes %zu", tensor->name, from->bytes,
                       tensor->bytes);
    }
    const tg_status status = tg_problem_allocate(tensor, sink);
    if (status == TG_OK)
        memcpy(tensor->data, from->data, tensor->bytes);
    return status;
}

tg_status tg_problem_feed(const tg_problem *forward, tg_problem *problem, const tg_sink *sink)
{
    tg_status status = TG_OK;
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        tg_host_tensor *tensor = &problem->tensors[i];
        if (!(tensor->flags & TG_IN) || !(tensor->is_fed || tensor->is_kept))
            continue;
        for (uint32_t f = 0; f < forward->n_tensors && status == TG_OK; f++) {
            const tg_host_tensor *from = &forward->tensors[f];
            if (strcmp(from->name, tensor->name) == 0 && from->data)
                status = feed_one(from, tensor, sink);
        }
    }
    return status;
}

/* The names of a program live as long as it; a problem may live longer. */
static const char *declared_name(const tg_algorithm *algorithm, const char *name, uint32_t *tile)
{
    for (*tile = 1; *tile < algorithm->n_tensors; ++*tile)
        if (algorithm->tensors[*tile].name && strcmp(algorithm->tensors[*tile].name, name) == 0)
            return algorithm->tensors[*tile].name;
    return NULL;
}

tg_status tg_problem_keep(const tg_program *program, int64_t chunk, tg_problem *problem, const tg_sink *sink)
{
    const tg_shape *shape = &problem->shape;
    const tg_sizes sizes = tg_sizes_of(shape, chunk);
    tg_status status = tg_sizes_check(program, &sizes, sink);
    for (uint32_t i = 0; i < program->n_tensors && status == TG_OK; i++) {
        const tg_tensor_info *info = &program->tensors[i];
        tg_host_tensor tensor = {.flags = info->flags, .is_kept = true};
        tensor.dtype = info->dtype == TG_F32X2 ? TG_NUM_F64 : st_of_dtype((tg_dtype)info->dtype);
        tensor.name = declared_name(problem->variant->algorithm, info->name, &tensor.tile);
        tensor.rank = rank_of(info->axes);
        if (!(info->flags & (TG_IN | TG_OUT)) || !tensor.name || tg_problem_tensor(problem, tensor.name) ||
            problem->n_tensors == TG_MAX_TENSORS)
            continue; /* a tensor of the signature, or a table (cu, index) */
        for (int axis = 0; axis < tensor.rank; axis++)
            tensor.extent[axis] = tg_tensor_extent(program, &sizes, i, (uint32_t)axis);
        status = set_bytes(&tensor, sink);
        if (status == TG_OK)
            problem->tensors[problem->n_tensors++] = tensor;
    }
    return status;
}
