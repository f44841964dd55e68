/* tests/kernels/contract.c - the tensors of a call in device memory as a contract has them (states.h). */
#include "damage.h"
#include "states.h"

#include <stdlib.h>
#include <string.h>

/* What nobody may read is NaN. Numbers of slots begin so high that 32 bits hold no offset of theirs, and memory where the first one lies. */
enum { POISON = 0xff, SLOTS = 2 * MOST_SEQUENCES, FIRST_SLOT = 1000000000, CHUNK = 64, MAX_RANK = 2 + TG_MAX_AXES };

/* A tensor in memory, or a pool of slots that initial and final states share. */
struct image {
    char name[16];
    unsigned char *before, *expected; /* `bytes` each */
    size_t bytes;
    int64_t stride[MAX_RANK]; /* by the host's axes */
    tg_num_type dtype;
    uint64_t base;
};

struct contract_call {
    const struct trial *trial, *const *after;
    int64_t cuts[MOST_SEQUENCES + 1]; /* of steps that are packed here */
    const struct contract *contract;
    const tg_program *program;
    struct image images[TG_MAX_TENSORS];
    tg_tensor_arg args[TG_MAX_TENSORS + 4];
    uint32_t n_images, n_args;
    uint64_t tables[4], workspace;
    uint32_t n_tables;
};

static const tg_driver *driver(void)
{
    return machine_context.machine.driver;
}

static const tg_tensor_info *info_of(const struct contract_call *call, const tg_host_tensor *host)
{
    const int i = tg_program_tensor(call->program, host->name);
    return i < 0 ? NULL : &call->program->tensors[i];
}

static bool is_slot(const struct contract_call *call, const tg_host_tensor *host)
{
    const int i = tg_program_tensor(call->program, host->name);
    return i >= 0 && tg_tensor_is_slot(call->program, (uint32_t)i);
}

/* A state whose values come first. */
static bool is_turned(const struct contract_call *call, const tg_host_tensor *host)
{
    return call->contract->values_first && host->rank == 4 && !host->has_tokens && !(host->flags & TG_NO_BATCH);
}

static bool is_padding(const struct contract *contract, int64_t b)
{
    return contract->pool && contract->pool < TG_POOL_TOKENS && contract->read[b] < 0 && contract->written[b] < 0;
}

static void element_at(const tg_host_tensor *host, size_t element, int64_t at[MAX_RANK])
{
    for (int i = MAX_RANK; i-- > 0;) {
        const size_t extent = i < host->rank ? (size_t)host->extent[i] : 1;
        at[i] = (int64_t)(element % extent);
        element /= extent;
    }
}

bool contract_is_ragged(const struct contract *contract)
{
    return contract->is_packed || contract->is_counted || contract->pool >= TG_POOL_TOKENS;
}

int contract_step(const struct contract *contract)
{
    return contract->pool == TG_POOL_CHUNKS ? CHUNK : 1;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Tokens of a sequence in memory. */
static int length_of(const struct trial *trial, const struct contract *contract, int64_t b)
{
    int given = 0;
    for (int i = 0; i < MOST_SEQUENCES; i++)
        given |= contract->length[i];
    return given ? contract->length[b] : (int)trial->problem.shape.tokens;
}

int contract_tokens(const struct trial *trial, const struct contract *contract, int64_t sequence)
{
    const int length = length_of(trial, contract, sequence);
    const int counted = contract->is_counted ? least(length, contract->count[sequence]) : length;
    return counted < 0 ? 0 : counted;
}

/* Sequence of an element, -1 of a tensor that all share. */
static int64_t sequence_of(const struct trial *trial, const tg_host_tensor *host, const int64_t at[MAX_RANK])
{
    const tg_cuts *cuts = &trial->problem.cuts;
    if (host->flags & TG_NO_BATCH)
        return -1;
    if (!cuts->at || !host->has_tokens)
        return at[0];
    int64_t s = 0;
    while (at[2] >= cuts->at[s + 1])
        s++;
    return s;
}

/* In memory there may be more tokens than the call has. */
static int64_t extent_of(const struct contract_call *call, const tg_host_tensor *host, int axis)
{
    if (call->contract->is_packed && host->has_tokens && axis != 1 && axis < 3)
        return axis ? call->cuts[call->trial->problem.shape.batch] + call->contract->room : 1;
    return host->extent[axis] + (axis == 2 && host->has_tokens ? call->contract->room : 0);
}

/* Rows are multiples of 16 bytes, with a gap behind them and behind every head and entry. */
static int64_t padded(int64_t elements, tg_num_type dtype)
{
    const int64_t unit = 16 / (int64_t)tg_num_bytes(dtype);
    return ((elements + unit - 1) / unit + 1) * unit;
}

static void set_strides(const struct contract_call *call, const tg_host_tensor *host, struct image *image)
{
    const tg_shape *shape = &call->trial->problem.shape;
    int order[MAX_RANK]; /* host axes, innermost first */
    for (int i = 0; i < host->rank; i++)
        order[i] = host->rank - 1 - i;
    if (is_turned(call, host)) {
        order[0] = 2;
        order[1] = 3;
    }
    const bool is_row = host->rank > 3 || (is_slot(call, host) && host->rank == 3);
    int64_t step = 1;
    for (int i = 0; i < host->rank; i++) {
        image->stride[order[i]] = step;
        step *= extent_of(call, host, order[i]);
        if (is_slot(call, host) && (is_row || i))
            step = padded(step, image->dtype);
    }
    if (call->contract->is_mixed && host->has_tokens && host->rank == 4) { /* [B, T, NH x (dqk + dhv)] */
        const int64_t row = padded(shape->heads * (shape->dqk + shape->dhv), image->dtype);
        image->stride[1] = host->extent[3];
        image->stride[2] = row;
        image->stride[0] = row * extent_of(call, host, 2);
    }
}

static size_t extent_of_image(const struct contract_call *call, const tg_host_tensor *host, const struct image *image)
{
    int64_t last = 0;
    for (int i = 0; i < host->rank; i++) {
        const int64_t extent = i == 0 && is_slot(call, host) ? SLOTS : extent_of(call, host, i);
        if (extent == 0)
            return 0;
        last += (extent - 1) * image->stride[i];
    }
    return (size_t)(last + 1) * tg_num_bytes(image->dtype);
}

static size_t offset_of(const struct image *image, const tg_host_tensor *host, const int64_t at[MAX_RANK],
                        int64_t entry)
{
    int64_t offset = entry * image->stride[0];
    for (int i = 1; i < host->rank; i++)
        offset += at[i] * image->stride[i];
    return (size_t)offset * tg_num_bytes(image->dtype);
}

/* The host's numbers of one sequence (-1: of all), as they are in the type of the image; of a pool in that slot of the
 * sequence. None of padding, and none of tokens that do not count. */
static void put(const struct contract_call *call, const struct image *image, const tg_host_tensor *host, int64_t only,
                const int *slots, unsigned char *to)
{
    const bool is_pool = is_slot(call, host), is_ragged = contract_is_ragged(call->contract) && host->has_tokens;
    for (size_t e = 0; e < host->n; e++) {
        int64_t at[MAX_RANK];
        element_at(host, e, at);
        const int64_t s = sequence_of(call->trial, host, at);
        if ((is_pool && slots[s] < 0) || (s >= 0 && only >= 0 && s != only) ||
            (s >= 0 && is_padding(call->contract, s)) ||
            (is_ragged && at[2] >= contract_tokens(call->trial, call->contract, s)))
            continue;
        if (is_ragged && call->contract->is_packed) {
            at[0] = 0;
            at[2] += call->cuts[s];
        }
        tg_num_store(to + offset_of(image, host, at, is_pool ? slots[s] : at[0]), image->dtype, 0,
                     tg_num_load(host->data, host->dtype, e));
    }
}

/* States as they are behind the last token of each sequence, or behind every token or chunk. */
static void put_states(const struct contract_call *call, const struct image *image, const char *name)
{
    const struct contract *contract = call->contract;
    const bool is_each = contract->pool >= TG_POOL_TOKENS;
    for (int64_t b = 0; b < call->trial->problem.shape.batch; b++) {
        const int last = contract_tokens(call->trial, contract, b), step = is_each ? contract_step(contract) : last;
        for (int k = 0; k * step < last; k++) {
            const int tokens = least((k + 1) * step, last);
            int slots[MOST_SEQUENCES];
            slots[b] = is_each ? contract->each[b][k] : contract->written[b];
            put(call, image, tg_problem_tensor((tg_problem *)&call->after[tokens]->problem, name), b, slots,
                image->expected);
        }
    }
}

/* Outputs of a sequence's tokens, as a call of so many leaves them. */
static void put_tokens(const struct contract_call *call, const struct image *image, const char *name)
{
    for (int64_t b = 0; b < call->trial->problem.shape.batch; b++) {
        const int tokens = contract_tokens(call->trial, call->contract, b);
        if (tokens)
            put(call, image, tg_problem_tensor((tg_problem *)&call->after[tokens]->problem, name), b, NULL,
                image->expected);
    }
}

static struct image *find_image(struct contract_call *call, const char *name)
{
    for (uint32_t i = 0; i < call->n_images; i++)
        if (strcmp(call->images[i].name, name) == 0)
            return &call->images[i];
    return NULL;
}

/* Of the initial state, where a final one goes; NULL: memory of its own. */
static struct image *image_of_source(struct contract_call *call, const tg_host_tensor *host)
{
    const tg_program *program = call->program;
    const int source = tg_tensor_source(program, (uint32_t)tg_program_tensor(program, host->name));
    return is_slot(call, host) && source >= 0 ? find_image(call, program->tensors[source].name) : NULL;
}

static tg_num_type type_of(tg_dtype dtype)
{
    return dtype == TG_BF16 ? TG_NUM_BF16 : dtype == TG_F16 ? TG_NUM_F16 : TG_NUM_F32;
}

static struct image *new_image(struct contract_call *call, const tg_host_tensor *host)
{
    struct image *image = &call->images[call->n_images++];
    *image = (struct image){.dtype = type_of((tg_dtype)info_of(call, host)->dtype)};
    snprintf(image->name, sizeof image->name, "%s", host->name);
    set_strides(call, host, image);
    image->bytes = extent_of_image(call, host, image);
    image->before = malloc(image->bytes + 1);
    image->expected = malloc(image->bytes + 1);
    memset(image->before, POISON, image->bytes);
    memset(image->expected, POISON, image->bytes);
    return image;
}

/* Strides in the order of the program's axes. */
static void add_arg(struct contract_call *call, const tg_host_tensor *host, const struct image *image)
{
    tg_tensor_arg *arg = &call->args[call->n_args++];
    const bool turned = is_turned(call, host);
    *arg = (tg_tensor_arg){.name = host->name, .address = image->base};
    for (int i = 0; i < host->rank; i++)
        arg->stride[turned && i >= 2 ? 5 - i : i] = image->stride[i];
    if (is_slot(call, host))
        arg->address -= (uint64_t)FIRST_SLOT * (uint64_t)image->stride[0] * tg_num_bytes(image->dtype);
}

static bool add_tensor(struct contract_call *call, const tg_host_tensor *host)
{
    const bool is_input = host->flags & TG_IN;
    if (!info_of(call, host) || !host->data)
        return true;
    struct image *image = is_input ? NULL : image_of_source(call, host);
    if (!image) {
        image = new_image(call, host);
        if (tg_memory_alloc(driver(), image->bytes + 1, &image->base, &log_sink) != TG_OK)
            return false;
    }
    if (is_input) {
        put(call, image, host, -1, call->contract->read, image->before);
        memcpy(image->expected, image->before, image->bytes);
    } else if (call->after && !(host->flags & TG_NO_BATCH)) {
        (host->has_tokens ? put_tokens : put_states)(call, image, host->name);
    } else {
        put(call, image, host, -1, call->contract->written, image->expected);
    }
    add_arg(call, host, image);
    return true;
}

static bool add_table(struct contract_call *call, const char *name, int axis, const int64_t *numbers, int64_t n)
{
    const size_t width = call->contract->is_wide ? 8 : 4;
    tg_tensor_arg *arg = &call->args[call->n_args++];
    *arg = (tg_tensor_arg){.name = name};
    arg->stride[axis] = call->contract->is_wide ? 2 : 1;
    bool ok = tg_memory_alloc(driver(), (size_t)n * width + 1, &arg->address, &log_sink) == TG_OK;
    call->tables[call->n_tables++] = arg->address;
    for (int64_t i = 0; i < n && ok; i++)
        ok = tg_memory_in(driver(), arg->address + (uint64_t)i * width, &numbers[i], width, &log_sink) == TG_OK;
    return ok;
}

static int64_t number_of_slot(int slot)
{
    return slot < 0 ? slot : FIRST_SLOT + slot;
}

static bool add_slots(struct contract_call *call, const char *name, const int *slots)
{
    int64_t numbers[MOST_SEQUENCES];
    for (int b = 0; b < MOST_SEQUENCES; b++)
        numbers[b] = number_of_slot(slots[b]);
    return add_table(call, name, 0, numbers, call->trial->problem.shape.batch);
}

/* Those of tokens as they lie in memory, those of chunks as they are numbered: packed, from boundary / L + b on. */
static bool add_each(struct contract_call *call)
{
    enum { MOST = MOST_SEQUENCES * MOST_TOKENS, NOBODYS = 1 };
    const struct contract *contract = call->contract;
    const int64_t batch = call->trial->problem.shape.batch, tokens = call->trial->problem.shape.tokens;
    const int step = contract_step(contract);
    const int64_t row = (tokens + step - 1) / step;
    int64_t numbers[MOST];
    for (int i = 0; i < MOST; i++)
        numbers[i] = NOBODYS;
    for (int64_t b = 0; b < batch; b++) {
        const int64_t first = contract->is_packed ? call->cuts[b] / step + (step > 1 ? b : 0) : row * b;
        for (int k = 0; k * step < length_of(call->trial, contract, b); k++)
            numbers[first + k] = number_of_slot(contract->each[b][k]);
    }
    const bool ok = add_table(call, "index_out", 2, numbers, MOST);
    if (!contract->is_packed)
        call->args[call->n_args - 1].stride[0] = row * (contract->is_wide ? 2 : 1);
    return ok;
}

static bool add_counts(struct contract_call *call)
{
    int64_t numbers[MOST_SEQUENCES];
    for (int i = 0; i < MOST_SEQUENCES; i++)
        numbers[i] = call->contract->count[i];
    return add_table(call, "count", 0, numbers, call->trial->problem.shape.batch);
}

static bool add_tables(struct contract_call *call)
{
    const tg_cuts *cuts = &call->trial->problem.cuts;
    const struct contract *contract = call->contract;
    const int64_t batch = call->trial->problem.shape.batch;
    return (!cuts->at || add_table(call, "cu", 2, cuts->at, cuts->n + 1)) &&
           (!contract->is_packed || add_table(call, "cu", 2, call->cuts, batch + 1)) &&
           (!contract->is_counted || add_counts(call)) &&
           (!contract->pool || add_slots(call, "index", contract->read)) &&
           (contract->pool != TG_POOL_MOVES || add_slots(call, "index_out", contract->written)) &&
           (contract->pool < TG_POOL_TOKENS || add_each(call));
}

/* Inputs first: outputs may lie in their memory. */
static bool add_all(struct contract_call *call)
{
    const tg_problem *problem = &call->trial->problem;
    bool ok = true;
    for (uint8_t direction = TG_IN; direction <= TG_OUT; direction++)
        for (uint32_t i = 0; i < problem->n_tensors && ok; i++)
            if (problem->tensors[i].flags & direction)
                ok = add_tensor(call, &problem->tensors[i]);
    for (uint32_t i = 0; i < call->n_images && ok; i++)
        ok = tg_memory_in(driver(), call->images[i].base, call->images[i].before, call->images[i].bytes, &log_sink) ==
             TG_OK;
    return ok && add_tables(call);
}

static bool compare(const struct image *image, bool is_told)
{
    unsigned char *found = malloc(image->bytes + 1);
    const tg_status status = tg_memory_out(driver(), found, image->base, image->bytes, &log_sink);
    size_t differ = 0, first = 0;
    for (size_t i = image->bytes; i-- > 0 && status == TG_OK;)
        if (found[i] != image->expected[i]) {
            differ++;
            first = i;
        }
    free(found);
    const bool ok = status == TG_OK && differ == 0;
    if (is_told)
        tap_expect(ok, "%s: %zu of %zu bytes are not as they must be, the first at %zu", image->name, differ,
                   image->bytes, first);
    return ok;
}

static tg_sizes sizes_of(const struct contract_call *call)
{
    const tg_shape *shape = &call->trial->problem.shape;
    const int64_t tokens = call->contract->is_packed ? call->cuts[shape->batch] : shape->tokens;
    return (tg_sizes){shape->batch, shape->heads, tokens + call->contract->room, call->trial->chunk};
}

static bool add_workspace(struct contract_call *call)
{
    const tg_sizes sizes = sizes_of(call);
    const uint64_t bytes = tg_workspace_bytes(call->program, &sizes);
    return tg_memory_alloc(driver(), bytes + 1, &call->workspace, &log_sink) == TG_OK;
}

static tg_status launch(const struct contract_call *call, const tg_module *module)
{
    const tg_problem *problem = &call->trial->problem;
    const tg_sizes sizes = sizes_of(call);
    float scalars[TG_MAX_SCALARS];
    for (uint32_t i = 0; i < problem->n_scalars; i++)
        scalars[i] = (float)problem->scalars[i];
    const tg_status status =
        tg_launch(module, &sizes, scalars, call->args, call->n_args, call->workspace, NULL, &log_sink);
    return status == TG_OK ? tg_synchronize(driver(), &log_sink) : status;
}

void contract_end(struct contract_call *call)
{
    for (uint32_t i = 0; call && i < call->n_images; i++) {
        tg_memory_free(driver(), call->images[i].base);
        free(call->images[i].before);
        free(call->images[i].expected);
    }
    for (uint32_t i = 0; call && i < call->n_tables; i++)
        tg_memory_free(driver(), call->tables[i]);
    if (call)
        tg_memory_free(driver(), call->workspace);
    free(call);
}

tg_shape_class contract_states(const struct contract *contract)
{
    return (tg_shape_class){.pooled = (uint8_t)contract->pool,
                            .state = (uint8_t)contract->state,
                            .values_first = contract->values_first,
                            .packed = contract->is_packed,
                            .counted = contract->is_counted};
}

bool contract_load(const struct trial *trial, const struct contract *contract, struct kernel *kernel)
{
    const tg_variant *variant = trial->problem.variant;
    const tg_shape_class states = contract_states(contract);
    tg_shape_class class = tg_shape_class_of(&trial->problem.shape, trial->spec->io);
    tg_schedule schedule;
    take_states(&class, &states);
    log_clear();
    const struct spec *spec = trial->spec;
    const char *name = variant == spec_variant(spec) ? spec->schedule : spec->backward;
    if (tg_variant_schedule_named(variant, name, &schedule, &log_sink) != TG_OK)
        return false;
    class.tokens = schedule.max_tokens;
    return harness_load(variant, &schedule, &class, kernel);
}

struct contract_call *contract_begin(const struct trial *trial, const struct trial *const *after,
                                     const struct contract *contract, const tg_program *program)
{
    struct contract_call *call = calloc(1, sizeof *call);
    *call = (struct contract_call){.trial = trial, .after = after, .contract = contract, .program = program};
    for (int64_t b = 0; b < trial->problem.shape.batch; b++)
        call->cuts[b + 1] = call->cuts[b] + length_of(trial, contract, b);
    log_clear();
    if (add_all(call) && add_workspace(call))
        return call;
    contract_end(call);
    return NULL;
}

const char *contract_go(const struct contract_call *call, const tg_module *module, bool is_told)
{
    const char *outcome = "nothing";
    log_clear();
    if (launch(call, module) != TG_OK)
        return damage_kind();
    for (uint32_t i = 0; i < call->n_images; i++)
        if (!compare(&call->images[i], is_told))
            outcome = "numbers";
    return outcome;
}

void contract_kept(const struct trial *trial, const struct trial *const *after, const struct contract *contract)
{
    struct kernel kernel;
    if (!tap_expect(contract_load(trial, contract, &kernel), "build: %s", log_text()))
        return;
    struct contract_call *call = contract_begin(trial, after, contract, kernel.program);
    const char *outcome = call ? contract_go(call, kernel.module, true) : damage_kind();
    contract_end(call);
    if (strcmp(outcome, "nothing") == 0 || strcmp(outcome, "numbers") == 0)
        return;
    tap_expect(false, "%s: %s", outcome, log_text());
    emulator_reset();
}

void contract_prepare(struct trial *trial, const struct contract *contract)
{
    tg_problem *problem = &trial->problem;
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const tg_host_tensor *host = &problem->tensors[i];
        const bool is_state = !host->has_tokens && !(host->flags & TG_NO_BATCH);
        const tg_num_type type = is_state && host->rank == 4 && contract->state ? type_of(contract->state) : TG_NUM_F32;
        for (size_t e = 0; e < host->n && host->flags & TG_IN && host->data; e++) {
            int64_t at[MAX_RANK];
            element_at(host, e, at);
            const int64_t s = sequence_of(trial, host, at);
            const bool is_nothing =
                s >= 0 && contract->pool &&
                ((is_state && contract->read[s] < 0) || (host->is_gradient && is_padding(contract, s)));
            unsigned char rounded[4];
            tg_num_store(rounded, type, 0, is_nothing ? 0 : tg_num_load(host->data, host->dtype, e));
            tg_num_store(host->data, host->dtype, e, tg_num_load(rounded, type, 0));
        }
    }
}
