/* cli/problem_file.c - the tensors of a call, read from a file. Sizes follow from the file, and
 * every tensor must agree with the first that told a size. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* B, NH, then by axis; and what only some tensors have on the first two. */
enum { SIZE_B, SIZE_NH, SIZE_AXES, SIZE_GROUPS = SIZE_AXES + TG_N_AXES, SIZE_ONE, N_SIZES };
enum { SHAPE_TEXT = 160 };

struct reader {
    struct context *context;
    const struct st_file *file;
    const char *path;
    tg_problem *problem;
    struct file_notes *notes;
    bool is_fed;
    int64_t value[N_SIZES];
    const char *from[N_SIZES];  /* which tensor told it; NULL: none yet */
    const struct st_tensor *io; /* the first tensor of the input type */
};

static const uint8_t *axes_of(const struct reader *reader, const tg_host_tensor *tensor)
{
    return reader->problem->variant->algorithm->tensors[tensor->tile].axes;
}

/* What an axis of a tensor in the file is the size of. */
static int size_of_axis(const struct reader *reader, const tg_host_tensor *tensor, int axis)
{
    const uint8_t *axes = axes_of(reader, tensor);
    if (is_turned_in_files(reader->context, tensor) && (axis == 1 || axis == 2))
        axis = 3 - axis;
    if (axis == 0)
        return reader->problem->cuts.at && axes[0] == TG_T ? SIZE_ONE : SIZE_B;
    if (axis == 1)
        return tensor->flags & TG_SHARED ? SIZE_GROUPS : SIZE_NH;
    return SIZE_AXES + axes[axis - 2];
}

static const char *size_label(int size)
{
    static const char *const labels[N_SIZES] = {
        [SIZE_B] = "B",
        [SIZE_NH] = "NH",
        [SIZE_AXES + TG_T] = "T",
        [SIZE_AXES + TG_DQK] = "dqk",
        [SIZE_AXES + TG_DHV] = "dhv",
        [SIZE_GROUPS] = "NH/group",
        [SIZE_ONE] = "1",
    };
    return labels[size] ? labels[size] : "?";
}

static void name_shape(const struct reader *reader, const tg_host_tensor *tensor, char text[SHAPE_TEXT])
{
    size_t n = (size_t)snprintf(text, SHAPE_TEXT, "[");
    for (int i = tensor->first_axis; i < tensor->rank; i++)
        n += (size_t)snprintf(text + n, SHAPE_TEXT - n, "%s%s", i > tensor->first_axis ? ", " : "",
                              size_label(size_of_axis(reader, tensor, i)));
    snprintf(text + n, SHAPE_TEXT - n, "]");
}

static void number_shape(const struct st_tensor *found, char text[SHAPE_TEXT])
{
    size_t n = 0;
    text[n++] = '[';
    for (int i = 0; i < found->rank && n < SHAPE_TEXT - 24; i++)
        n += (size_t)snprintf(text + n, SHAPE_TEXT - n, "%s%lld", i ? ", " : "", (long long)found->shape[i]);
    snprintf(text + n, SHAPE_TEXT - n, "]");
}

/* in.q or q; what the forward computed may be there as its output. */
const struct st_tensor *tensor_in_file(const struct st_file *file, const tg_host_tensor *tensor)
{
    char full[64];
    tensor_file_name(tensor, full);
    const struct st_tensor *found = st_find(file, full);
    if (!found && tensor->flags & TG_IN)
        found = st_find(file, tensor->name);
    if (!found && tensor->is_fed) {
        snprintf(full, sizeof full, "out.%s", tensor->name);
        found = st_find(file, full);
    }
    return found;
}

/* ---- sizes and types ---- */

static bool is_float(tg_num_type type)
{
    return type == TG_NUM_BF16 || type == TG_NUM_F16 || type == TG_NUM_F32 || type == TG_NUM_F64;
}

bool is_for_all_heads(const tg_host_tensor *tensor, const struct st_tensor *found)
{
    return tensor->flags & TG_NO_BATCH && tensor->rank == 2 && found->rank == 0;
}

static bool learn_extents(struct reader *reader, const tg_host_tensor *tensor, const struct st_tensor *found)
{
    char expected[SHAPE_TEXT], actual[SHAPE_TEXT];
    if (is_for_all_heads(tensor, found))
        return true;
    name_shape(reader, tensor, expected);
    number_shape(found, actual);
    if (found->rank != tensor->rank - tensor->first_axis) {
        complain(reader->context, "lay the tensor out as that, contiguous", "%s: %s has shape %s, expected %d axes %s",
                 reader->path, found->name, actual, tensor->rank - tensor->first_axis, expected);
        return false;
    }
    for (int i = 0; i < found->rank; i++) {
        const int size = size_of_axis(reader, tensor, tensor->first_axis + i);
        if (!reader->from[size]) {
            reader->value[size] = found->shape[i];
            reader->from[size] = found->name;
        } else if (reader->value[size] != found->shape[i]) {
            complain(reader->context, "all tensors of a call must agree in B, NH, T, dqk and dhv",
                     "%s: %s has shape %s, expected %s with %s = %lld as in %s", reader->path, found->name, actual,
                     expected, size_label(size), (long long)reader->value[size], reader->from[size]);
            return false;
        }
    }
    return true;
}

static bool learn_type(struct reader *reader, const tg_host_tensor *tensor, const struct st_tensor *found)
{
    struct context *context = reader->context;
    const tg_algorithm *algorithm = reader->problem->variant->algorithm;
    const bool is_io = algorithm->tensors[tensor->tile].dtype == TG_IO;
    const bool is_converted = context->options.dtype != NULL;
    if (!is_float(found->dtype)) {
        complain(context, "convert it to BF16, F16 or F32 before saving",
                 "%s: %s is %s, expected a floating-point type", reader->path, found->name, tg_num_name(found->dtype));
        return false;
    }
    /* Narrowing is rounding, and that only on request. Widening is exact. */
    if (found->dtype == TG_NUM_F64 && !is_converted) {
        complain(context, "save it as F32, or choose the type to round to with --dtype", "%s: %s is F64, expected %s",
                 reader->path, found->name, is_io ? "BF16, F16 or F32" : "F32");
        return false;
    }
    if (!is_io || tensor->is_fed)
        return true;
    if (!reader->io)
        reader->io = found;
    if (reader->io->dtype == found->dtype || is_converted)
        return true;
    complain(context, "save both in one type, or convert with --dtype", "%s: %s is %s, expected %s like %s",
             reader->path, found->name, tg_num_name(found->dtype), tg_num_name(reader->io->dtype), reader->io->name);
    return false;
}

static bool miss(struct reader *reader, const tg_host_tensor *tensor)
{
    char expected[SHAPE_TEXT], hint[256], full[64];
    if (tensor->flags & TG_OPTIONAL || (reader->is_fed && tensor->is_fed))
        return true;
    name_shape(reader, tensor, expected);
    tensor_file_name(tensor, full);
    snprintf(hint, sizeof hint, "%s needs it, shape %s; `tegula variants` lists all", reader->problem->variant->name,
             expected);
    complain(reader->context, hint, "%s: there is no tensor %s, nor %s", reader->path, full, tensor->name);
    return false;
}

static bool learn_sizes(struct reader *reader)
{
    bool ok = true;
    for (uint32_t i = 0; i < reader->problem->n_tensors; i++) {
        const tg_host_tensor *tensor = &reader->problem->tensors[i];
        if (!(tensor->flags & TG_IN))
            continue;
        const struct st_tensor *found = tensor_in_file(reader->file, tensor);
        ok &= found ? learn_type(reader, tensor, found) && learn_extents(reader, tensor, found) : miss(reader, tensor);
    }
    return ok;
}

/* Heads of queries and keys that are shared, and heads of values, tell the group. */
static bool learn_group(struct reader *reader, int64_t *group)
{
    struct context *context = reader->context;
    const int64_t heads = reader->value[SIZE_NH], groups = reader->value[SIZE_GROUPS];
    *group = 1;
    if (reader->from[SIZE_GROUPS] && groups != heads) {
        if (groups == 0 || heads % groups != 0) {
            complain(context, "each of the first serves the same number of the second",
                     "%s: %s has %lld heads, which do not divide the %lld of %s", reader->path,
                     reader->from[SIZE_GROUPS], (long long)groups, (long long)heads, reader->from[SIZE_NH]);
            return false;
        }
        *group = heads / groups;
    }
    if (!context->options.group || context->options.group == *group)
        return true;
    complain(context, "leave out --group: the tensors of a file tell it", "--group %lld: in %s %lld heads share one",
             (long long)context->options.group, reader->path, (long long)*group);
    return false;
}

/* ---- scalars and boundaries, from the metadata `scalars` ---- */

static bool read_cuts(struct reader *reader, const json_t *list)
{
    tg_cuts *cuts = &reader->problem->cuts;
    size_t i, n = json_array_size(list);
    json_t *number;
    bool ok = n >= 1;
    cuts->at = malloc((n + 1) * sizeof *cuts->at);
    cuts->n = (int64_t)n - 1;
    json_array_foreach(list, i, number)
    {
        ok &= json_is_integer(number);
        if (cuts->at)
            cuts->at[i] = json_integer_value(number);
    }
    if (!ok)
        complain(reader->context, "write it as \"cu\": [0, 5, 40]",
                 "%s: `cu` in the metadata is not a list of whole numbers", reader->path);
    return ok && cuts->at;
}

static bool read_number(struct reader *reader, const char *name, const json_t *value)
{
    const int scalar = tg_problem_scalar(reader->problem, name);
    if (scalar < 0)
        return problem_unknown_scalar(reader->context, reader->problem, reader->path, name);
    if (json_is_number(value)) {
        reader->problem->scalars[scalar] = json_number_value(value);
        return true;
    }
    complain(reader->context, "write it as {\"scale\": 0.125}, or pass --set",
             "%s: metadata `scalars` is not a JSON object with a number `%s`", reader->path, name);
    return false;
}

static bool read_scalars(struct reader *reader)
{
    const char *text = st_meta(reader->file, "scalars");
    json_t *scalars = text ? json_loads(text, 0, NULL) : NULL, *value;
    const char *name;
    bool ok = true;
    if (!text)
        return true;
    if (!json_is_object(scalars)) {
        complain(reader->context, "write it as {\"scale\": 0.125}, or pass --set",
                 "%s: metadata `scalars` is not a JSON object with a number `scale`", reader->path);
        ok = false;
    }
    json_object_foreach(scalars, name, value)
    {
        if (strcmp(name, "cu") != 0)
            ok &= read_number(reader, name, value);
        else if (!reader->context->options.cuts.at)
            ok &= read_cuts(reader, value);
    }
    json_decref(scalars);
    return ok;
}

/* --cu takes the place of the file's. Their number is that of the sequences. */
static bool learn_cuts(struct reader *reader)
{
    const tg_cuts *wanted = &reader->context->options.cuts;
    tg_cuts *cuts = &reader->problem->cuts;
    if (wanted->at && tg_cuts_copy(wanted, cuts, &reader->context->sink) != TG_OK)
        return false;
    if (!cuts->at && reader->context->options.packed) {
        complain(reader->context, "give the boundaries with --cu", "--packed: %s has no `cu` in the metadata `scalars`",
                 reader->path);
        return false;
    }
    if (!cuts->at)
        return true;
    reader->value[SIZE_B] = cuts->n;
    reader->from[SIZE_B] = wanted->at ? "--cu" : "cu";
    reader->value[SIZE_ONE] = 1;
    reader->from[SIZE_ONE] = "packed sequences";
    return true;
}

/* ---- numbers ---- */

static bool read_tensor(struct reader *reader, const struct st_tensor *found, tg_host_tensor *tensor)
{
    bool *is_rounded = &reader->notes->is_rounded;
    if (is_for_all_heads(tensor, found)) {
        for (size_t i = 0; i < tensor->n; i++)
            tg_num_store(tensor->data, tensor->dtype, i, tg_num_load(found->data, found->dtype, 0));
        return true;
    }
    if (found->dtype == tensor->dtype) {
        memcpy(tensor->data, found->data, tensor->bytes);
        return true;
    }
    tg_num_convert((tg_array){tensor->data, tensor->dtype, tensor->n}, st_array(found));
    for (size_t i = 0; i < tensor->n && !*is_rounded && !tensor->is_fed; i++) {
        double before = tg_num_load(found->data, found->dtype, i);
        double after = tg_num_load(tensor->data, tensor->dtype, i);
        *is_rounded = before != after && !(isnan(before) && isnan(after));
    }
    return true;
}

/* In our order; what the file has in another. */
static bool read_turned(struct reader *reader, const struct st_tensor *found, tg_host_tensor *tensor)
{
    struct st_tensor turned = *found;
    void *numbers = malloc(found->bytes + 1);
    if (!numbers) {
        complain(reader->context, "use a smaller file", "out of memory");
        return false;
    }
    layout_turn(tensor, tg_num_bytes(found->dtype), found->data, numbers, true);
    turned.data = numbers;
    const bool ok = read_tensor(reader, &turned, tensor);
    free(numbers);
    return ok;
}

static bool read_tensors(struct reader *reader)
{
    tg_problem *problem = reader->problem;
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        tg_host_tensor *tensor = &problem->tensors[i];
        if (!(tensor->flags & TG_IN) || (reader->is_fed && tensor->is_fed))
            continue;
        const struct st_tensor *found = tensor_in_file(reader->file, tensor);
        if (!found)
            continue;
        reader->notes->is_prefixed |= strncmp(found->name, "in.", 3) == 0;
        if (tg_problem_allocate(tensor, &reader->context->sink) != TG_OK ||
            !(is_turned_in_files(reader->context, tensor) ? read_turned : read_tensor)(reader, found, tensor))
            return false;
    }
    return true;
}

static bool io_type(struct context *context, const struct st_tensor *first, tg_dtype *io)
{
    if (context->options.dtype)
        return dtype_parse(context, context->options.dtype, io);
    *io = !first ? TG_F32 : first->dtype == TG_NUM_BF16 ? TG_BF16 : first->dtype == TG_NUM_F16 ? TG_F16 : TG_F32;
    return true;
}

/* The types of the tensors hang on the input type, which the file tells. */
static void retype(tg_problem *problem, tg_dtype io)
{
    problem->io = io;
    for (uint32_t i = 0; i < problem->n_tensors; i++)
        if (problem->variant->algorithm->tensors[problem->tensors[i].tile].dtype == TG_IO)
            problem->tensors[i].dtype = io == TG_BF16 ? TG_NUM_BF16 : io == TG_F16 ? TG_NUM_F16 : TG_NUM_F32;
}

/* Of in.s0 for in.S0: what is misspelt would be taken for absent. */
static bool check_name(const struct reader *reader, const char *name)
{
    const tg_problem *problem = reader->problem;
    char full[64], likely[64] = "";
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        tensor_file_name(&problem->tensors[i], full);
        if (strcmp(full, name) == 0)
            return true;
        if (strcasecmp(full, name) == 0 && !st_find(reader->file, full))
            memcpy(likely, full, sizeof likely);
    }
    if (!*likely)
        return true;
    complain(reader->context, "names tell large letters from small ones", "%s: %s is no tensor of %s: expected %s",
             reader->path, name, problem->variant->name, likely);
    return false;
}

/* A backward's file is its forward's too. */
static bool check_names(const struct reader *reader)
{
    bool ok = true;
    for (size_t i = 0; !variant_forward(reader->context, reader->problem->variant) && i < st_count(reader->file); i++)
        ok = check_name(reader, st_at(reader->file, i)->name) && ok;
    return ok;
}

static bool read_all(struct reader *reader)
{
    struct context *context = reader->context;
    tg_problem *problem = reader->problem;
    tg_shape shape = {.most_tokens = context->options.tokens, .pooled = context->options.pool};
    tg_dtype io;
    if (!check_names(reader) || !read_scalars(reader) || !learn_cuts(reader) || !learn_sizes(reader) ||
        !learn_group(reader, &shape.group) || !io_type(context, reader->io, &io))
        return false;
    if (!options_states_of(context, &shape))
        return false;
    retype(problem, io);
    shape.batch = reader->value[SIZE_B];
    shape.heads = reader->value[SIZE_NH];
    shape.tokens = reader->value[SIZE_AXES + TG_T];
    shape.dqk = reader->value[SIZE_AXES + TG_DQK];
    shape.dhv = reader->value[SIZE_AXES + TG_DHV];
    shape.packed = problem->cuts.at != NULL;
    const tg_sink *sink = &context->sink;
    return (!shape.packed || tg_cuts_check(reader->path, &problem->cuts, shape.tokens, sink) == TG_OK) &&
           tg_problem_size(&shape, problem, sink) == TG_OK && problem_options(context, problem) && read_tensors(reader);
}

bool problem_read(struct context *context, const tg_variant *variant, const struct st_file *file, const char *path,
                  bool is_fed, tg_problem *problem, struct file_notes *notes)
{
    struct reader reader = {.context = context, .file = file, .path = path, .problem = problem, .notes = notes};
    reader.is_fed = is_fed;
    *notes = (struct file_notes){false, false};
    if (!problem_declare(context, variant, TG_F32, problem))
        return false;
    if (read_all(&reader))
        return true;
    tg_problem_free(problem);
    return false;
}
