/* tests/kernels/inputs.c - numbers for the inputs, by regime. */
#include "harness.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void *tensor_copy(tg_problem *problem, const char *name)
{
    const tg_host_tensor *tensor = tg_problem_tensor(problem, name);
    void *copy = malloc(tensor->bytes + 1);
    if (copy && tensor->data)
        memcpy(copy, tensor->data, tensor->bytes);
    return copy;
}

void tensor_drop(tg_problem *problem, const char *name)
{
    tg_host_tensor *tensor = tg_problem_tensor(problem, name);
    free(tensor->data);
    tensor->data = NULL;
}

/* ---- gates ---- */

static double log_sigmoid(double x)
{
    return fmin(x, 0) - log1p(exp(-fabs(x)));
}

/* The forget gate's bias: memories of 2, 20 and 400 tokens. */
static double bias_of(const tg_host_tensor *tensor, size_t index)
{
    const size_t row = tensor->has_tokens && tensor->extent[2] ? (size_t)tensor->extent[2] : 1;
    const size_t heads = tensor->extent[1] ? (size_t)tensor->extent[1] : 1;
    return 3.0 * (double)(index / row % heads % 3);
}

/* What a tensor's numbers are made from. */
struct source {
    const tg_host_tensor *tensor;
    tg_random random;
    const double *normals; /* the first numbers of the stream */
    size_t n_normals;
};

/* Tests want the same numbers again, of a name's stream: kept, as far as most of them go. */
static void find_normals(struct source *source)
{
    enum { MAX_STREAMS = 64, MOST = 1 << 20 };
    static struct {
        uint64_t stream;
        double *x;
        size_t n;
    } kept[MAX_STREAMS];
    size_t i = 0;
    while (i < MAX_STREAMS - 1 && kept[i].x && kept[i].stream != source->random.stream)
        i++;
    const size_t n = source->tensor->n < MOST ? source->tensor->n : MOST;
    if (kept[i].stream != source->random.stream || kept[i].n < n) {
        free(kept[i].x);
        kept[i].stream = source->random.stream;
        kept[i].n = 2 * n;
        kept[i].x = malloc(2 * n * sizeof *kept[i].x);
        if (!kept[i].x)
            kept[i].n = 0;
        tg_num_fill_normal((tg_array){kept[i].x, TG_NUM_F64, kept[i].n}, source->random, 0, 1);
    }
    source->normals = kept[i].x;
    source->n_normals = kept[i].n;
}

static double normal(const struct source *source, size_t index)
{
    return index < source->n_normals ? source->normals[index] : tg_num_normal(source->random, index);
}

static double ordinary(const struct source *source, size_t index)
{
    const tg_host_tensor *tensor = source->tensor;
    const tg_random random = source->random;
    const double x = normal(source, index);
    switch (tensor->drawn) {
    case TG_DRAWN_FORGET:
        return x + bias_of(tensor, index);
    case TG_DRAWN_LOG_DECAY:
        return log_sigmoid(x + bias_of(tensor, index));
    case TG_DRAWN_LOG_LET_IN: /* little enough that the floor divides where q.n crosses zero */
        return x - 3;
    case TG_DRAWN_UNIT:
        return x / sqrt((double)tensor->extent[3]);
    case TG_DRAWN_NORMAL:
    case TG_DRAWN_LET_IN:
        return x;
    default: /* as all problems have them */
        return tg_random_number(tensor, random, index);
    }
}

/* `sign` is that of the gate: + lets in, or keeps. */
static double saturated(uint8_t drawn, double ordinary_value, double sign)
{
    switch (drawn) {
    case TG_DRAWN_FORGET:
    case TG_DRAWN_LET_IN:
    case TG_DRAWN_LOG_LET_IN:
    case TG_DRAWN_STEP:
        return 30 * sign;
    case TG_DRAWN_LOG_DECAY:
        return sign > 0 ? 0 : -30;
    default:
        return ordinary_value;
    }
}

/* Tokens are masked alike in all gates, of which one is shut: nothing is let in at one, nothing kept at the next. Both at
 * once would make the largest of the exponents of mLSTM-exp -inf. Of a fraction, beta, nothing or next to nothing is taken. */
static double masked(uint8_t drawn, double ordinary_value, size_t index)
{
    static const double fractions[] = {0, 1e-30, 0x1p-8, 0x1p-7};
    const double shut = index / 10 % 2 ? -INFINITY : -FLT_MAX;
    switch (drawn) {
    case TG_DRAWN_LET_IN:
    case TG_DRAWN_LOG_LET_IN:
    case TG_DRAWN_STEP:
        return index % 10 == 3 ? shut : ordinary_value;
    case TG_DRAWN_FORGET:
    case TG_DRAWN_LOG_DECAY:
        return index % 10 == 8 ? shut : ordinary_value;
    case TG_DRAWN_FRACTION:
        return index % 10 == 5 ? fractions[index / 10 % 4] : ordinary_value;
    default:
        return ordinary_value;
    }
}

static double forgetful(const struct source *source, double ordinary_value, size_t index)
{
    const uint8_t drawn = source->tensor->drawn;
    return drawn == TG_DRAWN_FORGET      ? normal(source, index) - 8
           : drawn == TG_DRAWN_LOG_DECAY ? -8 - fabs(normal(source, index))
                                         : ordinary_value;
}

/* Large steps forget, too. */
static double uneven(const struct source *source, double ordinary_value, size_t index)
{
    const int64_t *extent = source->tensor->extent;
    const size_t heads = (size_t)extent[1], each = source->tensor->n / ((size_t)extent[0] * heads);
    if (index / each % heads % 3 != 1 || index % each / 64 % 2)
        return ordinary_value;
    return source->tensor->drawn == TG_DRAWN_STEP ? ordinary_value + 8 : forgetful(source, ordinary_value, index);
}

static double number(const struct source *source, enum gates gates, size_t index)
{
    const double x = ordinary(source, index);
    const uint8_t drawn = source->tensor->drawn;
    switch (gates) {
    case DECAY:
        return forgetful(source, x, index);
    case UNEVEN:
        return uneven(source, x, index);
    case EXTREME:
        return saturated(drawn, x, tg_num_bits(source->random, index) & 1 ? 1 : -1);
    case OPEN:
        return saturated(drawn, x, 1);
    case CLOSED:
        return saturated(drawn, x, -1);
    case MASKED:
        return masked(drawn, x, index);
    case CROSSING:
        return drawn == TG_DRAWN_FORGET ? normal(source, index) + 6 : drawn == TG_DRAWN_LOG_LET_IN ? x + 5 : x;
    default:
        return x;
    }
}

/* ---- tensors ---- */

static void fill(const tg_host_tensor *tensor, const struct spec *spec)
{
    struct source source = {.tensor = tensor, .random = {7, tg_num_stream(tensor->name)}};
    const bool is_shared = spec->layout == SHARED && strcmp(tensor->name, "k") == 0;
    const size_t n_heads = (size_t)(tensor->extent[0] * tensor->extent[1]);
    const size_t head = n_heads > 0 ? tensor->n / n_heads : 0; /* elements of one head */
    const size_t sequence = head * (size_t)tensor->extent[1];
    find_normals(&source);
    for (size_t e = 0; e < tensor->n; e++) {
        const size_t from = is_shared ? e / sequence * sequence + e % head : e;
        tg_num_store(tensor->data, tensor->dtype, e, number(&source, spec->gates, from));
    }
}

/* Initial states have the gradients of final ones as their other ends. */
static bool is_there(const struct spec *spec, const tg_host_tensor *tensor)
{
    if (spec->without && strcmp(spec->without, tensor->name) == 0)
        return false;
    if (!(tensor->flags & TG_OPTIONAL))
        return true;
    return tensor->is_gradient ? !spec->no_final : spec->has_s0;
}

bool fill_inputs(tg_problem *problem, const struct spec *spec)
{
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        tg_host_tensor *tensor = &problem->tensors[i];
        if (!(tensor->flags & TG_IN) || tensor->data || tensor->is_fed || tensor->is_kept || !is_there(spec, tensor))
            continue;
        if (tg_problem_allocate(tensor, &machine_context.sink) != TG_OK)
            return tap_expect(false, "no memory for %s", tensor->name);
        if (spec->zero_states && tensor->flags & TG_OPTIONAL)
            memset(tensor->data, 0, tensor->bytes);
        else
            fill(tensor, spec);
    }
    return true;
}
