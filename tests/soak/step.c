/* tests/soak/step.c - a step as one call: its tensors in device memory, where what nobody may read is NaN, and what it may
 * have written. */
#include "tests/soak/soak.h"

#include "tests/kernels/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_diag(void *user, const tg_diag *diag)
{
    (void)user;
    printf("# %s %s\n", diag->code, diag->message);
}

const tg_sink soak_sink = {print_diag, NULL};

bool must(struct engine *e, bool ok, const char *what)
{
    if (!ok && e->ok)
        tap_expect(false, "%s: %s, step %lld; again: ./dev soak 1 %llu", e->variant->name, what, e->steps,
                   (unsigned long long)e->seed);
    e->ok = e->ok && ok;
    return ok;
}

int draw(struct engine *e, int n)
{
    const tg_random random = {e->seed, tg_num_stream("soak")};
    return (int)(tg_num_bits(random, e->drawn++) % (uint64_t)n);
}

/* ---- the pool ---- */

void slot_put(struct engine *e, int slot, const void *from)
{
    unsigned char *to = e->slots + (size_t)slot * e->slot_bytes;
    memcpy(to, from, e->slot_bytes);
    must(e,
         tg_memory_in(e->machine->driver, e->pool + (size_t)slot * e->slot_bytes, to, e->slot_bytes, &soak_sink) ==
             TG_OK,
         "memory");
}

int slot_take(struct engine *e)
{
    int slot;
    do
        slot = 1 + draw(e, SLOTS - 1);
    while (e->is_taken[slot]);
    e->is_taken[slot] = true;
    return slot;
}

void slot_free(struct engine *e, int slot)
{
    if (slot < 0)
        return;
    unsigned char *nothing = malloc(e->slot_bytes);
    memset(nothing, POISON, e->slot_bytes);
    slot_put(e, slot, nothing);
    free(nothing);
    e->is_taken[slot] = false;
}

static bool is_given(const struct step *step, int slot)
{
    for (int p = 0; p < step->n; p++)
        for (int j = 0; j < (step->is_prefill ? 1 : step->parts[p].count); j++)
            if (step->parts[p].sequence && step->parts[p].to[j] == slot)
                return true;
    return false;
}

/* Reads the pool back: only slots that the step was given have changed. */
static void pool_check(struct engine *e, const struct step *step)
{
    unsigned char *now = malloc(SLOTS * e->slot_bytes);
    must(e, tg_memory_out(e->machine->driver, now, e->pool, SLOTS * e->slot_bytes, &soak_sink) == TG_OK, "memory");
    for (int s = 0; s < SLOTS && e->ok; s++) {
        const size_t at = (size_t)s * e->slot_bytes;
        const bool is_same = memcmp(now + at, e->slots + at, e->slot_bytes) == 0;
        must(e, is_same != is_given(step, s),
             is_same ? "a slot was not written" : "a slot of nobody in the step changed");
    }
    memcpy(e->slots, now, SLOTS * e->slot_bytes);
    free(now);
}

/* ---- a launch ---- */

struct buffers {
    tg_tensor_arg args[TG_MAX_TENSORS + 4];
    unsigned char *data[TG_MAX_TENSORS]; /* of tensors with tokens */
    uint64_t memory[TG_MAX_TENSORS + 5];
    uint32_t n_args, n_memory;
};

static size_t row_bytes(const tg_host_tensor *tensor)
{
    return tensor->bytes / (HEADS * LENGTH);
}

static uint64_t to_device(struct engine *e, struct buffers *b, const void *data, size_t bytes)
{
    uint64_t *address = &b->memory[b->n_memory++];
    must(e, tg_memory_alloc(e->machine->driver, bytes + 1, address, &soak_sink) == TG_OK, "memory");
    if (data && e->ok)
        must(e, tg_memory_in(e->machine->driver, *address, data, bytes, &soak_sink) == TG_OK, "memory");
    return *address;
}

/* Drafts that will be rejected are other tokens than those that the sequence goes on with. */
static int position(const struct part *part, int j)
{
    return j < part->accepted ? part->at + j : (part->at + j + WRONG) % LENGTH;
}

/* Between the rows of the step and those of its sequences: all that count in, or those accepted out. */
static void move_rows(const struct step *step, uint32_t tensor, unsigned char *rows, bool is_in)
{
    const size_t total = (size_t)step->cuts[step->n];
    for (int p = 0; p < step->n; p++) {
        const struct part *part = &step->parts[p];
        for (int i = 0; part->sequence && i < HEADS * (is_in ? part->count : part->accepted); i++) {
            const tg_host_tensor *host = &part->sequence->problem.tensors[tensor];
            const size_t bytes = row_bytes(host), head = (size_t)i % HEADS;
            const int j = i / HEADS;
            unsigned char *row = rows + (head * total + (size_t)(step->cuts[p] + j)) * bytes;
            unsigned char *own = (unsigned char *)host->data + (head * LENGTH + (size_t)position(part, j)) * bytes;
            memcpy(is_in ? row : own, is_in ? own : row, bytes);
        }
    }
}

static void add_tensors(struct engine *e, const struct step *step, struct buffers *b)
{
    const tg_problem *like = &e->live[0].problem;
    for (uint32_t i = 0; i < like->n_tensors; i++) {
        const tg_host_tensor *host = &like->tensors[i];
        tg_tensor_arg *arg = &b->args[b->n_args++];
        *arg = (tg_tensor_arg){.name = host->name, .address = e->values[i] ? e->parameters[i] : e->pool};
        if (!host->has_tokens)
            continue;
        const size_t bytes = (size_t)step->cuts[step->n] * HEADS * row_bytes(host);
        b->data[i] = malloc(bytes + 1);
        memset(b->data[i], POISON, bytes);
        if (host->flags & TG_IN)
            move_rows(step, i, b->data[i], true);
        arg->address = to_device(e, b, b->data[i], bytes);
    }
}

static void add_table(struct engine *e, struct buffers *b, const char *name, int axis, const int *numbers, int n)
{
    tg_tensor_arg *arg = &b->args[b->n_args++];
    *arg = (tg_tensor_arg){.name = name};
    arg->stride[axis] = 1;
    arg->address = to_device(e, b, numbers, (size_t)n * sizeof *numbers);
}

static void add_tables(struct engine *e, const struct step *step, struct buffers *b)
{
    int from[MOST_PARTS], count[MOST_PARTS], to[MOST_ROW];
    for (int i = 0; i < MOST_ROW; i++)
        to[i] = NOBODYS;
    for (int p = 0; p < step->n; p++) {
        const struct part *part = &step->parts[p];
        from[p] = part->from;
        count[p] = part->count;
        for (int j = 0; j < (step->is_prefill ? 1 : part->count); j++)
            to[step->is_prefill ? p : step->cuts[p] + j] = part->to[j];
    }
    add_table(e, b, "cu", 2, step->cuts, step->n + 1);
    add_table(e, b, "index", 0, from, step->n);
    add_table(e, b, "index_out", step->is_prefill ? 0 : 2, to, MOST_ROW);
    if (!step->is_prefill)
        add_table(e, b, "count", 0, count, step->n);
}

/* Nothing was written behind the tokens that count, nor for padding. */
static bool is_rest_untouched(const struct step *step, const unsigned char *rows, size_t bytes)
{
    const size_t total = (size_t)step->cuts[step->n];
    for (int p = 0; p < step->n; p++)
        for (int j = step->parts[p].count; j < step->parts[p].length; j++)
            for (size_t i = 0; i < HEADS * bytes; i++)
                if (rows[(i / bytes * total + (size_t)(step->cuts[p] + j)) * bytes + i % bytes] != POISON)
                    return false;
    return true;
}

static void fetch(struct engine *e, const struct step *step, struct buffers *b)
{
    const tg_problem *like = &e->live[0].problem;
    for (uint32_t i = 0; i < like->n_tensors && e->ok; i++) {
        const tg_host_tensor *host = &like->tensors[i];
        if (!host->has_tokens || !(host->flags & TG_OUT))
            continue;
        const size_t bytes = (size_t)step->cuts[step->n] * HEADS * row_bytes(host);
        must(e, tg_memory_out(e->machine->driver, b->data[i], b->args[i].address, bytes, &soak_sink) == TG_OK,
             "memory");
        must(e, is_rest_untouched(step, b->data[i], row_bytes(host)), "an output of no token was written");
        move_rows(step, i, b->data[i], false);
    }
}

void step_run(struct engine *e, struct step *step)
{
    struct buffers *b = calloc(1, sizeof *b);
    const tg_module *module = step->is_prefill ? e->prefill : e->decode;
    for (int p = 0; p < step->n; p++)
        step->cuts[p + 1] = step->cuts[p] + step->parts[p].length;
    const tg_sizes sizes = {step->n, HEADS, step->cuts[step->n], 0};
    add_tensors(e, step, b);
    add_tables(e, step, b);
    const uint64_t workspace = to_device(e, b, NULL, tg_workspace_bytes(tg_module_program(module), &sizes));
    if (e->ok)
        must(e,
             tg_launch(module, &sizes, NULL, b->args, b->n_args, workspace, NULL, &soak_sink) == TG_OK &&
                 tg_synchronize(e->machine->driver, &soak_sink) == TG_OK,
             "the launch failed");
    if (e->ok) {
        fetch(e, step, b);
        pool_check(e, step);
    }
    for (uint32_t i = 0; i < b->n_memory; i++)
        tg_memory_free(e->machine->driver, b->memory[i]);
    for (uint32_t i = 0; i < TG_MAX_TENSORS; i++)
        free(b->data[i]);
    free(b);
}
