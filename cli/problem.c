/* cli/problem.c - the tensors of a call on the host, with their names, types and extents.
 * Tensors are [B, NH, axes...] and contiguous; an axis of which there is one entry for all (the
 * batch of a parameter, or of the tokens of packed sequences) is 1 long. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum st_dtype st_of_dtype(tg_dtype dtype)
{
    return dtype == TG_BF16 ? ST_BF16 : dtype == TG_F16 ? ST_F16 : ST_F32;
}

static int rank_of(const uint8_t *axes)
{
    int rank = 2;
    while (rank < 2 + TG_MAX_AXES && axes[rank - 2] != TG_AXIS_NONE)
        rank++;
    return rank;
}

struct host_tensor *problem_tensor(struct problem *problem, const char *name)
{
    for (uint32_t i = 0; i < problem->n_tensors; i++)
        if (strcmp(problem->tensors[i].name, name) == 0)
            return &problem->tensors[i];
    return NULL;
}

int problem_scalar(const struct problem *problem, const char *name)
{
    for (uint32_t i = 0; i < problem->n_scalars; i++)
        if (strcmp(problem->declared[i].name, name) == 0)
            return (int)i;
    return -1;
}

void tensor_file_name(const struct host_tensor *tensor, char full[64])
{
    const char *role = tensor->flags & TG_OUT ? (tensor->is_gradient ? "grad" : "out")
                       : tensor->is_gradient  ? "dout"
                                              : "in";
    snprintf(full, 64, "%s.%s", role, tensor->name + (tensor->is_gradient ? 1 : 0));
}

static bool out_of_memory(struct context *context, const struct host_tensor *tensor)
{
    char size[32];
    complain(context, "use a smaller shape", "no host memory for %s (%s)", tensor->name,
             bytes_text((double)tensor->bytes, size));
    return false;
}

bool problem_allocate(struct context *context, struct host_tensor *tensor)
{
    free(tensor->data);
    tensor->data = malloc(tensor->bytes ? tensor->bytes : 1);
    return tensor->data || out_of_memory(context, tensor);
}

void problem_free(struct problem *problem)
{
    for (uint32_t i = 0; i < problem->n_tensors; i++)
        free(problem->tensors[i].data);
    problem->n_tensors = 0;
    free(problem->cuts.at);
    problem->cuts = (struct cuts){NULL, 0};
}

static uint32_t width_of(int64_t width)
{
    return width > 0 && width < UINT32_MAX ? (uint32_t)width : UINT32_MAX;
}

tg_shape_class shape_class_of(const struct shape *shape, tg_dtype io)
{
    return (tg_shape_class){.io = io,
                            .dqk = width_of(shape->dqk),
                            .dhv = width_of(shape->dhv),
                            .group = shape->group ? width_of(shape->group) : 1,
                            .tokens = shape->most_tokens ? width_of(shape->most_tokens) : 0,
                            .packed = shape->packed,
                            .pooled = shape->pooled};
}

json_t *shape_json(const struct shape *shape)
{
    json_t *json =
        json_pack("{s:I, s:I, s:I, s:I, s:I}", "B", (json_int_t)shape->batch, "NH", (json_int_t)shape->heads, "T",
                  (json_int_t)shape->tokens, "dqk", (json_int_t)shape->dqk, "dhv", (json_int_t)shape->dhv);
    if (shape->group > 1)
        json_object_set_new(json, "group", json_integer(shape->group));
    if (shape->packed)
        json_object_set_new(json, "packed", json_true());
    if (shape->pooled)
        json_object_set_new(json, "pooled", json_true());
    return json;
}

/* ---- declarations ---- */

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

static struct host_tensor declare(const tg_variant *variant, const tg_variant *forward, uint32_t tile, tg_dtype io)
{
    const tg_tensor *declared = &variant->algorithm->tensors[tile];
    struct host_tensor tensor = {.name = declared->name, .tile = tile, .flags = declared->flags};
    tensor.dtype = declared->dtype == TG_IO ? st_of_dtype(io) : ST_F32;
    tensor.rank = rank_of(declared->axes);
    tensor.has_tokens = declared->axes[0] == TG_T;
    tensor.first_axis = declared->flags & TG_NO_BATCH ? 1 : 0;
    tensor.is_gradient = names_gradient(forward, declared->name);
    /* A max state is there for the sake of such a gate. */
    tensor.is_exponential = strcmp(declared->name, "i") == 0 && signature_tensor(variant, "m0") != NULL;
    tensor.is_unit = strcmp(declared->name, "k") == 0 && signature_tensor(variant, "beta") != NULL;
    tensor.is_fed = declared->flags & TG_IN && is_result(forward, declared->name);
    return tensor;
}

static void declare_scalars(struct problem *problem)
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

bool problem_declare(struct context *context, const tg_variant *variant, tg_dtype io, struct problem *problem)
{
    const tg_algorithm *algorithm = variant->algorithm;
    const tg_variant *forward = variant_forward(context, variant);
    *problem = (struct problem){.variant = variant, .io = io};
    declare_scalars(problem);
    for (uint32_t tile = 1; tile < algorithm->n_tensors; tile++) {
        const tg_tensor *declared = &algorithm->tensors[tile];
        if (!(declared->flags & (TG_IN | TG_OUT)))
            continue;
        if (problem->n_tensors == TG_MAX_TENSORS) {
            complain(context, "split the algorithm", "%s has more than %d inputs and outputs", variant->name,
                     TG_MAX_TENSORS);
            return false;
        }
        problem->tensors[problem->n_tensors++] = declare(variant, forward, tile, io);
    }
    return true;
}

/* ---- sizes ---- */

static int64_t extent_of(const struct shape *shape, const struct host_tensor *tensor, const uint8_t *axes, int axis)
{
    const int64_t group = shape->group ? shape->group : 1;
    if (axis == 0)
        return tensor->flags & TG_NO_BATCH || (shape->packed && axes[0] == TG_T) ? 1 : shape->batch;
    if (axis == 1)
        return tensor->flags & TG_NO_HEADS ? 1 : tensor->flags & TG_SHARED ? shape->heads / group : shape->heads;
    const uint8_t name = axes[axis - 2];
    return name == TG_T ? shape->tokens : name == TG_DQK ? shape->dqk : shape->dhv;
}

static bool set_bytes(struct context *context, struct host_tensor *tensor)
{
    tensor->n = 1;
    for (int i = 0; i < tensor->rank; i++) {
        if (__builtin_mul_overflow(tensor->n, (size_t)tensor->extent[i], &tensor->n) || tensor->n > SIZE_MAX / 16) {
            complain(context, "use a smaller shape", "%s does not fit an address space", tensor->name);
            return false;
        }
    }
    tensor->bytes = tensor->n * st_dtype_bytes(tensor->dtype);
    return true;
}

bool cuts_copy(struct context *context, const struct cuts *from, struct cuts *to)
{
    const size_t bytes = (size_t)(from->n + 1) * sizeof *from->at;
    *to = (struct cuts){malloc(bytes), from->n};
    if (to->at)
        memcpy(to->at, from->at, bytes);
    else
        complain(context, "use fewer sequences", "no host memory for their boundaries");
    return to->at != NULL;
}

/* For those who time: sequences of equal length, as far as T allows. */
static bool cut_evenly(struct context *context, struct problem *problem)
{
    const struct shape *shape = &problem->shape;
    struct cuts *cuts = &problem->cuts;
    cuts->n = shape->batch;
    cuts->at = calloc((size_t)shape->batch + 1, sizeof *cuts->at);
    for (int64_t s = 0; cuts->at && s <= shape->batch; s++)
        cuts->at[s] = s == shape->batch ? shape->tokens : shape->tokens / shape->batch * s;
    if (!cuts->at)
        complain(context, "use fewer sequences", "no host memory for their boundaries");
    return cuts->at != NULL;
}

bool problem_size(struct context *context, const struct shape *shape, struct problem *problem)
{
    problem->shape = *shape;
    if (isnan(problem->scale))
        problem->scale = 1 / sqrt((double)shape->dqk);
    if (shape->group > 1 && shape->heads % shape->group != 0) {
        complain(context, "choose a group that divides NH", "a group of %lld heads does not divide NH = %lld",
                 (long long)shape->group, (long long)shape->heads);
        return false;
    }
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        struct host_tensor *tensor = &problem->tensors[i];
        const uint8_t *axes = problem->variant->algorithm->tensors[tensor->tile].axes;
        if (memchr(axes, TG_CHUNK, TG_MAX_AXES)) {
            complain(context, "give it the axes of positions, or none of them",
                     "%s has a row for each chunk, and how long those are only a schedule says", tensor->name);
            return false;
        }
        for (int axis = 0; axis < tensor->rank; axis++)
            tensor->extent[axis] = extent_of(shape, tensor, axes, axis);
        if (!set_bytes(context, tensor))
            return false;
    }
    return !shape->packed || problem->cuts.at || cut_evenly(context, problem);
}

bool problem_layout(struct context *context, const tg_variant *variant, const struct shape *shape, tg_dtype io,
                    struct problem *problem)
{
    return problem_declare(context, variant, io, problem) && problem_size(context, shape, problem);
}

bool cuts_check(struct context *context, const char *label, const struct cuts *cuts, int64_t tokens)
{
    static const char *const hint = "give where each sequence begins, then T: 0,5,5,40";
    if (cuts->at[0] != 0) {
        complain(context, hint, "%s: the boundaries begin with %lld, expected 0", label, (long long)cuts->at[0]);
        return false;
    }
    for (int64_t s = 0; s < cuts->n; s++)
        if (cuts->at[s + 1] < cuts->at[s]) {
            complain(context, hint, "%s: the boundaries fall from %lld to %lld", label, (long long)cuts->at[s],
                     (long long)cuts->at[s + 1]);
            return false;
        }
    if (cuts->at[cuts->n] == tokens)
        return true;
    complain(context, hint, "%s: the boundaries end with %lld, expected T = %lld", label, (long long)cuts->at[cuts->n],
             (long long)tokens);
    return false;
}

/* ---- options ---- */

bool problem_unknown_scalar(struct context *context, const struct problem *problem, const char *where, const char *name)
{
    const char *names[TG_MAX_SCALARS + 1] = {NULL};
    struct text hint = {0};
    tg_writer writer = text_writer(&hint);
    for (uint32_t i = 0; i < problem->n_scalars; i++)
        names[i] = problem->declared[i].name;
    const char *near = nearest_name(name, names);
    if (near)
        tg_printf(&writer, "did you mean '%s'?", near);
    else
        tg_printf(&writer, "%s has:", problem->variant->name);
    for (uint32_t i = 0; !near && i < problem->n_scalars; i++)
        tg_printf(&writer, " %s", names[i]);
    complain(context, text_of(&hint), "%s: %s has no scalar '%s'", where, problem->variant->name, name);
    text_free(&hint);
    return false;
}

bool problem_options(struct context *context, struct problem *problem)
{
    const struct options *options = &context->options;
    if (options->scale > 0)
        problem->scale = options->scale;
    for (uint32_t i = 0; i < options->n_settings; i++) {
        const int scalar = problem_scalar(problem, options->settings[i].name);
        if (scalar < 0)
            return problem_unknown_scalar(context, problem, "--set", options->settings[i].name);
        problem->scalars[scalar] = options->settings[i].value;
    }
    problem->is_token_major = options->layout && strcmp(options->layout, "bthd") == 0;
    problem->is_wide = options->int64;
    problem->seed = (uint64_t)options->seed;
    return true;
}

/* ---- what one program leaves for another ---- */

static bool feed_one(struct context *context, const struct host_tensor *from, struct host_tensor *tensor)
{
    if (from->bytes != tensor->bytes || from->dtype != tensor->dtype) {
        complain(context, "give both schedules one chunk size with --chunk",
                 "%s: the forward left %zu bytes, the backward takes %zu", tensor->name, from->bytes, tensor->bytes);
        return false;
    }
    if (!problem_allocate(context, tensor))
        return false;
    memcpy(tensor->data, from->data, tensor->bytes);
    return true;
}

bool problem_feed(struct context *context, const struct problem *forward, struct problem *problem)
{
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        struct host_tensor *tensor = &problem->tensors[i];
        if (!(tensor->flags & TG_IN) || !(tensor->is_fed || tensor->is_kept))
            continue;
        for (uint32_t f = 0; f < forward->n_tensors; f++) {
            const struct host_tensor *from = &forward->tensors[f];
            if (strcmp(from->name, tensor->name) == 0 && from->data && !feed_one(context, from, tensor))
                return false;
        }
    }
    return true;
}

/* The names of a program live as long as it; a problem may live longer. */
static const char *declared_name(const tg_algorithm *algorithm, const char *name, uint32_t *tile)
{
    for (*tile = 1; *tile < algorithm->n_tensors; ++*tile)
        if (algorithm->tensors[*tile].name && strcmp(algorithm->tensors[*tile].name, name) == 0)
            return algorithm->tensors[*tile].name;
    return NULL;
}

bool problem_keep(struct context *context, const tg_program *program, int64_t chunk, struct problem *problem)
{
    const struct shape *shape = &problem->shape;
    const tg_sizes sizes = {shape->batch, shape->heads, shape->tokens, chunk};
    if (tg_sizes_check(program, &sizes, &context->sink) != TG_OK)
        return false;
    for (uint32_t i = 0; i < program->n_tensors; i++) {
        const tg_tensor_info *info = &program->tensors[i];
        struct host_tensor tensor = {.flags = info->flags, .is_kept = true};
        tensor.dtype = info->dtype == TG_F32X2 ? ST_F64 : st_of_dtype((tg_dtype)info->dtype);
        tensor.name = declared_name(problem->variant->algorithm, info->name, &tensor.tile);
        tensor.rank = rank_of(info->axes);
        if (!(info->flags & (TG_IN | TG_OUT)) || !tensor.name || problem_tensor(problem, tensor.name) ||
            problem->n_tensors == TG_MAX_TENSORS)
            continue; /* a tensor of the signature, or a table (cu, index) */
        for (int axis = 0; axis < tensor.rank; axis++)
            tensor.extent[axis] = tg_tensor_extent(program, &sizes, i, (uint32_t)axis);
        if (!set_bytes(context, &tensor))
            return false;
        problem->tensors[problem->n_tensors++] = tensor;
    }
    return true;
}
