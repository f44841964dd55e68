/* cli/problem.c - the tensors of a call on the host: read from a file, or made of random numbers.
 * Tensors are [B, NH, axes...] and contiguous; sizes follow from the file, and every tensor must
 * agree with the first that told a size. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_SIZES = 2 + TG_N_AXES, SHAPE_TEXT = 160 };

static enum st_dtype st_of_dtype(tg_dtype dtype)
{
    return dtype == TG_BF16 ? ST_BF16 : dtype == TG_F16 ? ST_F16 : ST_F32;
}

static int rank_of(const tg_tensor *declared)
{
    int rank = 2;
    while (rank < 2 + TG_MAX_AXES && declared->axes[rank - 2] != TG_AXIS_NONE)
        rank++;
    return rank;
}

static int64_t extent_of(const struct shape *shape, uint8_t axis)
{
    return axis == TG_T ? shape->tokens : axis == TG_DQK ? shape->dqk : shape->dhv;
}

bool problem_layout(struct context *context, const tg_variant *variant, const struct shape *shape,
                    tg_dtype io, struct problem *problem)
{
    const tg_algorithm *algorithm = variant->algorithm;
    *problem = (struct problem){.variant = variant, .shape = *shape, .io = io};
    problem->scale = 1 / sqrt((double)shape->dqk);
    for (uint32_t tile = 1; tile < algorithm->n_tensors; tile++) {
        const tg_tensor *declared = &algorithm->tensors[tile];
        if (!(declared->flags & (TG_IN | TG_OUT)))
            continue;
        if (problem->n_tensors == TG_MAX_TENSORS) {
            complain(context, "split the algorithm", "%s has more than %d inputs and outputs",
                     variant->name, TG_MAX_TENSORS);
            return false;
        }
        struct host_tensor *tensor = &problem->tensors[problem->n_tensors++];
        *tensor = (struct host_tensor){.name = declared->name, .tile = tile};
        tensor->flags = declared->flags;
        tensor->dtype = declared->dtype == TG_IO ? st_of_dtype(io) : ST_F32;
        tensor->rank = rank_of(declared);
        tensor->has_tokens = declared->axes[0] == TG_T;
        tensor->n = 1;
        for (int i = 0; i < tensor->rank; i++) {
            tensor->extent[i] = i == 0   ? shape->batch
                                : i == 1 ? shape->heads
                                         : extent_of(shape, declared->axes[i - 2]);
            if (__builtin_mul_overflow(tensor->n, (size_t)tensor->extent[i], &tensor->n) ||
                tensor->n > SIZE_MAX / 16) {
                complain(context, "use a smaller shape", "%s does not fit an address space",
                         tensor->name);
                return false;
            }
        }
        tensor->bytes = tensor->n * st_dtype_bytes(tensor->dtype);
    }
    return true;
}

void problem_free(struct problem *problem)
{
    for (uint32_t i = 0; i < problem->n_tensors; i++)
        free(problem->tensors[i].data);
    problem->n_tensors = 0;
}

static bool out_of_memory(struct context *context, const struct host_tensor *tensor)
{
    char size[32];
    complain(context, "use a smaller shape", "no host memory for %s (%s)", tensor->name,
             bytes_text((double)tensor->bytes, size));
    return false;
}

static uint32_t width_of(int64_t width)
{
    return width > 0 && width < UINT32_MAX ? (uint32_t)width : UINT32_MAX;
}

tg_shape_class shape_class_of(const struct shape *shape, tg_dtype io)
{
    return (tg_shape_class){io, width_of(shape->dqk), width_of(shape->dhv)};
}

/* ---- from a file ---- */

static void name_shape(const tg_tensor *declared, char text[SHAPE_TEXT])
{
    static const char *const names[TG_N_AXES] = {
        [TG_T] = ", T", [TG_CHUNK] = ", chunk", [TG_DQK] = ", dqk", [TG_DHV] = ", dhv", [TG_PARTS] = ", parts"};
    snprintf(text, SHAPE_TEXT, "[B, NH");
    for (int i = 2; i < rank_of(declared); i++)
        strcat(text, names[declared->axes[i - 2]]);
    strcat(text, "]");
}

static void number_shape(const int64_t *extent, int rank, char text[SHAPE_TEXT])
{
    size_t n = 0;
    text[n++] = '[';
    for (int i = 0; i < rank && n < SHAPE_TEXT - 24; i++)
        n += (size_t)snprintf(text + n, SHAPE_TEXT - n, "%s%lld", i ? ", " : "",
                              (long long)extent[i]);
    snprintf(text + n, SHAPE_TEXT - n, "]");
}

/* A backward's tensors: those it shares with the forward, and d + the name of one. */
static bool is_gradient(const tg_variant *variant, const char *name)
{
    return strstr(variant->name, "-backward") && name[0] == 'd';
}

bool problem_name(const tg_variant *variant, const char *name, uint8_t flags, char full[64])
{
    const bool gradient = is_gradient(variant, name);
    const char *role = flags & TG_OUT ? (gradient ? "grad" : "out") : gradient ? "dout" : "in";
    snprintf(full, 64, "%s.%s", role, name + (gradient ? 1 : 0));
    return gradient;
}

static const struct st_tensor *find_input(const struct st_file *file, const tg_variant *variant,
                                          const char *name)
{
    char full[64];
    problem_name(variant, name, TG_IN, full);
    const struct st_tensor *tensor = st_find(file, full);
    return tensor ? tensor : st_find(file, name);
}

static bool is_float(enum st_dtype type)
{
    return type == ST_BF16 || type == ST_F16 || type == ST_F32 || type == ST_F64;
}

/* The sizes so far, and which tensor told each of them. */
struct sizes {
    int64_t value[N_SIZES]; /* B, NH, then by axis */
    const char *from[N_SIZES];
    const struct st_tensor *io; /* the first tensor of the input type */
};

static bool learn_extents(struct context *context, const char *path, const tg_tensor *declared,
                          const struct st_tensor *found, struct sizes *sizes)
{
    static const char *const labels[N_SIZES] = {"B", "NH", [2 + TG_T] = "T", [2 + TG_DQK] = "dqk",
                                                [2 + TG_DHV] = "dhv"};
    char expected[SHAPE_TEXT], actual[SHAPE_TEXT];
    name_shape(declared, expected);
    number_shape(found->shape, found->rank, actual);
    if (found->rank != rank_of(declared)) {
        complain(context, "lay the tensor out as [batch, heads, ...], contiguous",
                 "%s: %s has shape %s, expected %d axes %s", path, found->name, actual,
                 rank_of(declared), expected);
        return false;
    }
    for (int i = 0; i < found->rank; i++) {
        int which = i < 2 ? i : 2 + declared->axes[i - 2];
        if (!sizes->from[which]) {
            sizes->value[which] = found->shape[i];
            sizes->from[which] = found->name;
        } else if (sizes->value[which] != found->shape[i]) {
            complain(context, "all tensors of a call must agree in B, NH, T, dqk and dhv",
                     "%s: %s has shape %s, expected %s with %s = %lld as in %s", path, found->name,
                     actual, expected, labels[which], (long long)sizes->value[which],
                     sizes->from[which]);
            return false;
        }
    }
    return true;
}

static bool learn_type(struct context *context, const char *path, const tg_tensor *declared,
                       const struct st_tensor *found, struct sizes *sizes)
{
    const bool is_converted = context->options.dtype != NULL;
    if (!is_float(found->dtype)) {
        complain(context, "convert it to BF16, F16 or F32 before saving",
                 "%s: %s is %s, expected a floating-point type", path, found->name,
                 st_dtype_name(found->dtype));
        return false;
    }
    /* Narrowing is rounding, and that only on request. Widening is exact. */
    if (found->dtype == ST_F64 && !is_converted) {
        complain(context, "save it as F32, or choose the type to round to with --dtype",
                 "%s: %s is F64, expected %s", path, found->name,
                 declared->dtype == TG_IO ? "BF16, F16 or F32" : "F32");
        return false;
    }
    if (declared->dtype != TG_IO)
        return true;
    if (!sizes->io)
        sizes->io = found;
    if (sizes->io->dtype == found->dtype || is_converted)
        return true;
    complain(context, "save both in one type, or convert with --dtype",
             "%s: %s is %s, expected %s like %s", path, found->name, st_dtype_name(found->dtype),
             st_dtype_name(sizes->io->dtype), sizes->io->name);
    return false;
}

static bool learn_sizes(struct context *context, const tg_variant *variant,
                        const struct st_file *file, const char *path, struct sizes *sizes)
{
    bool ok = true;
    for (uint32_t tile = 1; tile < variant->algorithm->n_tensors; tile++) {
        const tg_tensor *declared = &variant->algorithm->tensors[tile];
        if (!(declared->flags & TG_IN))
            continue;
        const struct st_tensor *found = find_input(file, variant, declared->name);
        if (found) {
            ok &= learn_type(context, path, declared, found, sizes) &&
                  learn_extents(context, path, declared, found, sizes);
        } else if (!(declared->flags & TG_OPTIONAL)) {
            char expected[SHAPE_TEXT], hint[256];
            name_shape(declared, expected);
            snprintf(hint, sizeof hint, "%s needs it, shape %s; `tegula variants` lists all",
                     variant->name, expected);
            char full[64];
            problem_name(variant, declared->name, TG_IN, full);
            complain(context, hint, "%s: there is no tensor %s, nor %s", path, full,
                     declared->name);
            ok = false;
        }
    }
    return ok;
}

static bool read_scale(struct context *context, const struct st_file *file, const char *path,
                       double *scale)
{
    const char *text = st_meta(file, "scalars");
    if (context->options.scale > 0) {
        *scale = context->options.scale;
        return true;
    }
    if (!text)
        return true;
    json_t *scalars = json_loads(text, 0, NULL);
    json_t *value = json_object_get(scalars, "scale");
    bool ok = json_is_object(scalars) && (!value || json_is_number(value));
    if (ok && value)
        *scale = json_number_value(value);
    json_decref(scalars);
    if (!ok)
        complain(context, "write it as {\"scale\": 0.125}, or pass --scale",
                 "%s: metadata `scalars` is not a JSON object with a number `scale`", path);
    return ok;
}

static bool read_tensor(struct context *context, const struct st_tensor *found,
                        struct host_tensor *tensor, bool *is_rounded)
{
    tensor->data = malloc(tensor->bytes ? tensor->bytes : 1);
    if (!tensor->data)
        return out_of_memory(context, tensor);
    if (found->dtype == tensor->dtype) {
        memcpy(tensor->data, found->data, tensor->bytes);
        return true;
    }
    num_convert((struct num_array){tensor->data, tensor->dtype, tensor->n}, num_of_tensor(found));
    for (size_t i = 0; i < tensor->n && !*is_rounded; i++) {
        double before = num_load(found->data, found->dtype, i);
        double after = num_load(tensor->data, tensor->dtype, i);
        *is_rounded = before != after && !(isnan(before) && isnan(after));
    }
    return true;
}

bool problem_read(struct context *context, const tg_variant *variant, const struct st_file *file,
                  const char *path, struct problem *problem)
{
    struct sizes sizes = {.io = NULL};
    tg_dtype io = TG_F32;
    *problem = (struct problem){.variant = variant};
    if (context->options.dtype && !dtype_parse(context, context->options.dtype, &io))
        return false;
    if (!learn_sizes(context, variant, file, path, &sizes))
        return false;
    if (!context->options.dtype && sizes.io)
        io = sizes.io->dtype == ST_BF16 ? TG_BF16 : sizes.io->dtype == ST_F16 ? TG_F16 : TG_F32;
    const struct shape shape = {sizes.value[0], sizes.value[1], sizes.value[2 + TG_T],
                                sizes.value[2 + TG_DQK], sizes.value[2 + TG_DHV]};
    if (!problem_layout(context, variant, &shape, io, problem) ||
        !read_scale(context, file, path, &problem->scale))
        return false;
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        struct host_tensor *tensor = &problem->tensors[i];
        const struct st_tensor *found =
            tensor->flags & TG_IN ? find_input(file, variant, tensor->name) : NULL;
        if (!found)
            continue;
        problem->is_prefixed |= strncmp(found->name, "in.", 3) == 0;
        if (!read_tensor(context, found, tensor, &problem->is_rounded)) {
            problem_free(problem);
            return false;
        }
    }
    return true;
}

/* ---- random ---- */

double random_mean(const struct host_tensor *tensor, size_t index)
{
    /* Scalar gates, [B, NH, T]: 6 is a sigmoid that forgets 1/400 a token, 0 one that forgets half.
     */
    if (tensor->rank != 3 || tensor->extent[2] == 0)
        return 0;
    size_t head = index / (size_t)tensor->extent[2] % (size_t)tensor->extent[1];
    return head % 2 ? 6 : 0;
}

bool problem_random(struct context *context, const tg_variant *variant, const struct shape *shape,
                    tg_dtype io, uint64_t seed, struct problem *problem)
{
    if (!problem_layout(context, variant, shape, io, problem))
        return false;
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        struct host_tensor *tensor = &problem->tensors[i];
        if (!(tensor->flags & TG_IN))
            continue;
        tensor->data = malloc(tensor->bytes ? tensor->bytes : 1);
        if (!tensor->data) {
            problem_free(problem);
            return out_of_memory(context, tensor);
        }
        const struct num_random random = {seed, num_stream(tensor->name)};
        for (size_t e = 0; e < tensor->n; e++)
            num_store(tensor->data, tensor->dtype, e,
                      num_normal(random, e) + random_mean(tensor, e));
    }
    return true;
}
