/* compiler/compile.c - the whole way from schedule to program, read top to bottom. */
#include "compiler/lower.h"

#include "build_id.h"
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"
#include "dsl/fields.h"
#include "program/text.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

static void text_write(void *user, const char *bytes, size_t n)
{
    text_add(user, bytes, n);
}

static bool has_matrix_state(const tg_algorithm *algorithm)
{
    for (uint32_t tile = 1; tile < algorithm->n_tensors; tile++)
        if (tg_tensor_is_state(&algorithm->tensors[tile]))
            return true;
    return false;
}

/* What is said of states is of states that there are. */
static bool check_states(const tg_algorithm *algorithm, const tg_shape_class *shape, const tg_sink *sink)
{
    const bool has_any = tg_algorithm_has_states(algorithm), has_matrix = has_matrix_state(algorithm);
    if (shape->pooled && !has_any)
        tg_report(sink, TG_ERROR, "TG0556", NULL, 0, "leave the pool out",
                  "%s has no states: pool: expected none, found states in slots", algorithm->name);
    if (shape->state && !has_matrix)
        tg_report(sink, TG_ERROR, "TG0556", NULL, 0, "leave the type of states out",
                  "%s has no states [dqk, dhv]: type of states: expected none, found %s", algorithm->name,
                  tg_dtype_name((tg_dtype)shape->state));
    if (shape->values_first && !has_matrix)
        tg_report(sink, TG_ERROR, "TG0556", NULL, 0, "leave the order of states out",
                  "%s has no states [dqk, dhv]: order of states: expected none, found values first", algorithm->name);
    return (has_any || !shape->pooled) && (has_matrix || !(shape->state || shape->values_first));
}

bool plan_check_shape(const tg_algorithm *algorithm, const tg_shape_class *shape, const tg_sink *sink)
{
    const uint32_t dims[] = {shape->dqk, shape->dhv};
    bool ok = true;
    for (int i = 0; i < 2; i++)
        if (dims[i] < 16 || dims[i] > 512 || dims[i] % 8) {
            tg_report(sink, TG_ERROR, "TG0540", NULL, 0, "pad the tensors with zeros, or cut the heads",
                      "%s is %u; expected a multiple of 8 from 16 to 512", i ? "dhv" : "dqk", dims[i]);
            ok = false;
        }
    if (shape->io != TG_BF16 && shape->io != TG_F16 && shape->io != TG_F32) {
        tg_report(sink, TG_ERROR, "TG0541", NULL, 0, "convert the inputs", "input type %s; expected bf16, f16 or f32",
                  tg_dtype_name(shape->io));
        ok = false;
    }
    if (shape->pooled > TG_POOL_CHUNKS) {
        tg_report(sink, TG_ERROR, "TG0551", NULL, 0, "choose one of these",
                  "pool of kind %u; expected 0..%d (tg_pooling)", shape->pooled, TG_POOL_CHUNKS);
        ok = false;
    }
    if (shape->state && shape->state != TG_BF16 && shape->state != TG_F16 && shape->state != TG_F32) {
        tg_report(sink, TG_ERROR, "TG0550", NULL, 0, "choose one of these",
                  "type of states %s; expected bf16, f16 or f32", tg_dtype_name((tg_dtype)shape->state));
        ok = false;
    }
    if (group_of(shape) > 65536) {
        tg_report(sink, TG_ERROR, "TG0544", NULL, 0, "repeat the shared tensors",
                  "group is %u; expected at most 65536 heads", shape->group);
        ok = false;
    }
    return check_states(algorithm, shape, sink) && ok;
}

/* A decode step takes few tokens; others count none, and store no state behind each. */
static bool check_tokens(const tg_schedule *s, const tg_shape_class *shape, const tg_sink *sink)
{
    const bool is_of_steps = shape->counted || shape->pooled == TG_POOL_TOKENS;
    if (s->max_tokens ? shape->tokens <= s->max_tokens && plan_takes_ragged(shape) && shape->pooled != TG_POOL_CHUNKS
                      : !is_of_steps)
        return true;
    if (s->max_tokens && !plan_takes_ragged(shape))
        tg_report(
            sink, TG_ERROR, "TG0554", s->file, s->rows[0].line, "keep states in a pool",
            "schedule %s: a decode step of sequences that may have no tokens moves no state: expected a pool, found "
            "none",
            s->name);
    else if (s->max_tokens && shape->pooled == TG_POOL_CHUNKS)
        tg_report(sink, TG_ERROR, "TG0552", s->file, s->rows[0].line, "store them after every token",
                  "schedule %s: states after every chunk, but a decode step has no chunks", s->name);
    else if (s->max_tokens)
        tg_report(sink, TG_ERROR, "TG0545", s->file, s->rows[0].line, "take a schedule without max_tokens",
                  "schedule %s: a decode step of at most %u tokens, found %u", s->name, s->max_tokens, shape->tokens);
    else
        tg_report(sink, TG_ERROR, "TG0552", s->file, s->rows[0].line,
                  "take a schedule with max_tokens, or packed sequences", "schedule %s: %s, expected a decode step",
                  s->name, shape->counted ? "counts of tokens" : "states after every token");
    return false;
}

/* The compiler adds tensors at the end of the table. */
static bool check_added(const tg_schedule *s, const tg_shape_class *shape, const tg_sink *sink)
{
    const bool adds = shape->packed || shape->pooled || shape->counted || tg_schedule_relays(s) || tg_schedule_adds(s);
    if (!adds || s->algorithm->n_tensors <= TILE_ADDED)
        return true;
    tg_report(
        sink, TG_ERROR, "TG0543", s->algorithm->file, 0, "leave gaps out of the table of tensors",
        "algorithm %s has %u tensors; at most %d where sequences are packed or counted, states in a pool or relayed, or sums made by several thread blocks",
        s->algorithm->name, s->algorithm->n_tensors, TILE_ADDED);
    return false;
}

/* What the caller is to have is whole; parts are added up as they were made. */
static bool check_parts(const tg_schedule *s, const tg_shape_class *shape, const struct tg_slices *slices,
                        const tg_sink *sink)
{
    bool ok = true;
    for (uint32_t tile = 1; tile < s->algorithm->n_tensors; tile++) {
        const tg_tensor *t = &s->algorithm->tensors[tile];
        const int row = tg_tile_row(s, tile);
        const bool is_fp32 = t->dtype != TG_F32X2 && (t->dtype != TG_IO || shape->io == TG_F32),
                   is_kept = tg_tile_kept(s, tile);
        if (row < 0 || (is_fp32 && !is_kept) || plan_parts(s, slices, shape, tile) == 1)
            continue;
        tg_report(sink, TG_ERROR, "TG0525", s->file, s->rows[row].line,
                  is_kept ? "leave it out of .kept, or sum it in one block"
                          : "declare it TG_F32, or sum it in one block",
                  "schedule %s: kernel %s makes %s in parts, which %s", s->name, s->rows[row].name, t->name,
                  is_kept ? "cannot be kept" : "are fp32");
        ok = false;
    }
    return ok;
}

/* What the caller has of whole sequences is in slots, but kernels know slots of states alone. */
static bool check_kept(const tg_schedule *s, const tg_shape_class *shape, const tg_sink *sink)
{
    bool ok = true;
    for (uint32_t i = 0; i < TG_MAX_KEPT && shape->pooled; i++) {
        const tg_tensor *t = tg_tile_tensor(s->algorithm, s->kept[i]);
        if (!t || !tg_tensor_is_of_sequence(t))
            continue;
        tg_report(sink, TG_ERROR, "TG0558", s->file, s->rows[0].line, "leave it out of .kept, or the pool",
                  "schedule %s: %s, of whole sequences, cannot be kept beside states in a pool", s->name, t->name);
        ok = false;
    }
    return ok;
}

static bool check_chunk(const tg_schedule *s, const tg_sink *sink)
{
    const uint32_t multiple = plan_chunk_multiple(s);
    if (s->chunk % multiple == 0)
        return true;
    tg_report(sink, TG_ERROR, "TG0542", s->file, s->rows[0].line, "change the chunk size, or the blocks of positions",
              "schedule %s: chunk size %u, expected a multiple of %u, as its blocks of positions are", s->name,
              s->chunk, multiple);
    return false;
}

/* A table as it is declared may have segments that nothing cuts; bound (tg_variant_schedule) it has none. */
static bool check_bound(const tg_schedule *schedule, const tg_sink *sink)
{
    for (uint32_t r = 0; r < schedule->n_rows; r++)
        if (schedule->rows[r].row[TG_SEG].role != TG_ROLE_NONE && schedule->rows[r].row[TG_SEG].block == 0) {
            tg_report(sink, TG_ERROR, "TG0225", schedule->file, schedule->rows[r].line,
                      "take it from tg_variant_schedule",
                      "schedule %s: kernel %s has segments of no length: a table, not one of its points",
                      schedule->name, schedule->rows[r].name);
            return false;
        }
    return true;
}

tg_status tg_plan_check(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *shape,
                        const tg_sink *sink)
{
    if (!schedule || !target || !shape)
        return TG_E_ARGUMENT;
    const tg_status status = tg_schedule_check(schedule, sink);
    if (status != TG_OK)
        return status;
    if (!plan_check_shape(schedule->algorithm, shape, sink) || !check_bound(schedule, sink))
        return TG_E_ARGUMENT;
    bool ok = check_chunk(schedule, sink) && check_tokens(schedule, shape, sink) &&
              check_added(schedule, shape, sink) && check_kept(schedule, shape, sink);
    struct plan *p = malloc(sizeof *p);
    if (!p)
        return TG_E_MEMORY;
    struct tg_slices slices;
    tg_schedule_slice(schedule, TG_MAX_ROWS, &slices);
    ok = check_parts(schedule, shape, &slices, sink) && ok;
    for (uint32_t r = 0; r < schedule->n_rows; r++)
        ok = plan_build(p, schedule, &slices, r, target, shape, sink) && ok;
    free(p);
    return ok ? TG_OK : TG_E_UNSUPPORTED;
}

/* One kernel on its way; each has a thread of its own, since ptxas takes longer than everything else. */
struct job {
    struct plan *plan;
    const tg_compile_options *options;
    struct lowered lowered;
    struct text messages; /* what the thread reported: handed on by the caller's thread */
    bool ok;
};

/* A message as a line of fields; read back by replay(). */
static void keep_message(void *user, const tg_diag *d)
{
    const tg_writer writer = {text_write, user};
    const char *fields[] = {d->code, d->file, d->hint, d->message};
    tg_printf(&writer, "%d%c%d%c", (int)d->severity, 0, d->line, 0);
    for (int i = 0; i < 4; i++)
        tg_printf(&writer, "%s%c", fields[i] ? fields[i] : "", 0);
}

static void replay(const struct text *messages, const tg_sink *sink)
{
    const char *at = messages->bytes, *end = at ? at + messages->size : at;
    if (messages->is_failed)
        tg_report(sink, TG_ERROR, "TG0799", NULL, 0, "compile for fewer shapes",
                  "no host memory for a kernel's messages");
    while (!messages->is_failed && at < end) {
        const char *field[6];
        for (int i = 0; i < 6; i++, at += strlen(at) + 1)
            field[i] = at;
        tg_report(sink, (tg_severity)atoi(field[0]), field[2], *field[3] ? field[3] : NULL, atoi(field[1]),
                  *field[4] ? field[4] : NULL, "%s", field[5]);
    }
}

/* What stops all kernels alike, a ptxas that is not there. */
static bool is_said_before(const struct job *jobs, uint32_t r)
{
    const struct text *said = &jobs[r].messages;
    for (uint32_t i = 0; i < r; i++)
        if (said->size && jobs[i].messages.size == said->size &&
            memcmp(jobs[i].messages.bytes, said->bytes, said->size) == 0)
            return true;
    return false;
}

static void *run_job(void *user)
{
    struct job *job = user;
    const tg_compile_options *o = job->options;
    const tg_sink sink = {keep_message, &job->messages};
    job->plan->sink = &sink;
    job->ok = lower_plan(job->plan, o && o->stage, &job->lowered) &&
              (!o || !o->ptxas || lower_assemble(job->plan, o->ptxas, o->strict, &job->lowered));
    return NULL;
}

static void show_stages(const struct job *job)
{
    const tg_compile_options *o = job->options;
    if (!o || !o->stage)
        return;
    struct text text = {0};
    plan_print(job->plan, &(tg_writer){text_write, &text});
    const char *const texts[] = {text.bytes, job->lowered.llvm, job->lowered.ptx};
    for (int stage = TG_STAGE_PLAN; stage <= TG_STAGE_PTX; stage++)
        if (texts[stage])
            o->stage(o->user, job->plan->name, (tg_stage)stage, texts[stage]);
    free(text.bytes);
}

_Static_assert((int)TG_MAX_ROWS <= (int)TG_MAX_KERNELS, "a kernel for every row");

static void fill_kernel(const struct job *job, const uint8_t index[TG_MAX_TILES], tg_kernel *kernel)
{
    const struct plan *p = job->plan;
    plan_copy_name(kernel->name, sizeof kernel->name, p->name);
    kernel->threads = p->threads * plan_chunks_together(p);
    kernel->shared_bytes = p->shared_bytes;
    kernel->n_grid = plan_grid(p, kernel->grid);
    kernel->n_args = plan_args(p, kernel->args);
    for (uint32_t i = 0; i < kernel->n_args; i++)
        if (kernel->args[i].kind == TG_ARG_POINTER || kernel->args[i].kind == TG_ARG_STRIDE ||
            kernel->args[i].kind == TG_ARG_MAP)
            kernel->args[i].index = index[kernel->args[i].index];
    kernel->cluster = (uint8_t)plan_cluster_size(p);
    kernel->overlap = plan_begins_beside(p) ? TG_OVERLAP_BESIDE : plan_overlaps(p) ? TG_OVERLAP_WAITS : TG_OVERLAP_NONE;
    kernel->n_maps = plan_maps(p, kernel->maps);
    for (uint32_t i = 0; i < kernel->n_maps; i++)
        kernel->maps[i].tensor = index[kernel->maps[i].tensor];
    kernel->registers = job->lowered.registers;
    kernel->spill_bytes = job->lowered.spill_bytes;
    kernel->n_mma = job->lowered.n_mma;
}

/* Runs all jobs; where no thread can be had, on this one. */
static void run_jobs(struct job *jobs, uint32_t n)
{
    pthread_t threads[TG_MAX_ROWS];
    bool started[TG_MAX_ROWS] = {false};
    for (uint32_t i = 0; i + 1 < n; i++)
        started[i] = pthread_create(&threads[i], NULL, run_job, &jobs[i]) == 0;
    for (uint32_t i = 0; i < n; i++)
        if (!started[i])
            run_job(&jobs[i]);
    for (uint32_t i = 0; i < n; i++)
        if (started[i])
            pthread_join(threads[i], NULL);
}

/* The images move to one block owned by the program. */
static bool keep_images(tg_program *program, const struct job *jobs)
{
    size_t bytes = 0;
    for (uint32_t k = 0; k < program->n_kernels; k++)
        bytes += strlen(jobs[k].lowered.ptx) + 1 + jobs[k].lowered.cubin_bytes;
    char *at = malloc(bytes + 1);
    if (!at)
        return false;
    program->storage = at;
    for (uint32_t k = 0; k < program->n_kernels; k++) {
        tg_kernel *kernel = &program->kernels[k];
        kernel->ptx_bytes = strlen(jobs[k].lowered.ptx);
        kernel->ptx = memcpy(at, jobs[k].lowered.ptx, kernel->ptx_bytes + 1);
        at += kernel->ptx_bytes + 1;
        kernel->cubin_bytes = jobs[k].lowered.cubin_bytes;
        if (kernel->cubin_bytes) {
            kernel->cubin = memcpy(at, jobs[k].lowered.cubin, kernel->cubin_bytes);
            at += kernel->cubin_bytes;
        }
    }
    return true;
}

static tg_status compile_rows(tg_program *program, const tg_schedule *schedule, const tg_target *target,
                              const tg_shape_class *shape, const tg_compile_options *options, const tg_sink *sink)
{
    struct job jobs[TG_MAX_ROWS] = {0};
    uint8_t index[TG_MAX_TILES] = {0};
    struct plan *plans = calloc(schedule->n_rows, sizeof *plans);
    tg_status status = plans ? TG_OK : TG_E_MEMORY;
    struct tg_slices slices;
    tg_schedule_slice(schedule, TG_MAX_ROWS, &slices);
    if (plans && !plan_tensors(program, schedule, &slices, shape, index, sink))
        status = TG_E_UNSUPPORTED;
    for (uint32_t r = 0; status == TG_OK && r < schedule->n_rows; r++) {
        jobs[r] = (struct job){.plan = &plans[r], .options = options};
        if (!plan_build(&plans[r], schedule, &slices, r, target, shape, sink))
            status = TG_E_UNSUPPORTED;
    }
    if (status == TG_OK) {
        plan_add_relay(program, plans, schedule->n_rows, index);
        plan_add_summed(program, plans, schedule->n_rows, index);
        run_jobs(jobs, schedule->n_rows);
    }
    for (uint32_t r = 0; status == TG_OK && r < schedule->n_rows; r++, program->n_kernels++) {
        if (!is_said_before(jobs, r))
            replay(&jobs[r].messages, sink);
        show_stages(&jobs[r]);
        fill_kernel(&jobs[r], index, &program->kernels[r]);
    }
    for (uint32_t r = 0; status == TG_OK && r < schedule->n_rows; r++)
        status = jobs[r].ok ? TG_OK : TG_E_COMPILE;
    if (status == TG_OK && !keep_images(program, jobs))
        status = TG_E_MEMORY;
    for (uint32_t r = 0; r < TG_MAX_ROWS; r++) {
        lower_free(&jobs[r].lowered);
        free(jobs[r].messages.bytes);
    }
    free(plans);
    return status;
}

tg_status tg_compile(const tg_variant *variant, const tg_schedule *schedule, const tg_target *target,
                     const tg_shape_class *shape, const tg_compile_options *options, tg_program **out,
                     const tg_sink *sink)
{
    if (!out)
        return TG_E_ARGUMENT;
    *out = NULL;
    tg_status status = tg_plan_check(schedule, target, shape, sink);
    if (status != TG_OK)
        return status;
    tg_program *program = calloc(1, sizeof *program);
    if (!program)
        return TG_E_MEMORY;
    plan_header(program, variant ? variant->name : schedule->algorithm->name, schedule, target, shape);
    status = compile_rows(program, schedule, target, shape, options, sink);
    if (status == TG_OK)
        status = tg_program_verify(program, sink);
    if (status == TG_OK)
        *out = program;
    else
        tg_program_free(program);
    return status;
}

/* One ptxas makes other cubins than the next, and is replaced under its name. */
static void print_ptxas(const tg_writer *writer, const char *ptxas)
{
    struct stat info = {0};
    if (ptxas && stat(ptxas, &info) == 0)
        tg_printf(writer, "cubin by %s, %lld bytes of %lld.%09ld\n", ptxas, (long long)info.st_size,
                  (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    else
        tg_printf(writer, "%s\n", ptxas ? ptxas : "ptx");
}

void tg_compile_key(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *shape,
                    const char *ptxas, char key[33])
{
    struct text text = {0};
    const tg_writer writer = {text_write, &text};
    tg_printf(&writer, "tegula %d %s %u %u %u\n", TG_PROGRAM_VERSION, target->arch, shape->io, shape->dqk, shape->dhv);
    print_ptxas(&writer, ptxas);
    tg_printf(&writer, "group %u packed %u pooled %u state %u %u count %u built %s\n", group_of(shape), shape->packed,
              shape->pooled, shape->state, shape->values_first, shape->counted, TEGULA_BUILD_ID);
    tg_schedule_key(schedule, &writer);
    const XXH128_hash_t hash = XXH3_128bits(text.bytes ? text.bytes : "", text.size);
    snprintf(key, 33, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    free(text.bytes);
}
