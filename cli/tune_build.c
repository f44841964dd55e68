/* cli/tune_build.c - compiling for the tuner. Compiling takes longer than timing, and one candidate
 * does not wait for another: the values of a field are compiled at once, on all cores.
 * Candidates stay out of the cache on disk; only the winner goes there. */
#include "tune.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The chunk size is a run-time value: code is the same for all of them. */
static void code_text(const struct tuner *tuner, const tg_schedule *schedule, char text[SCHEDULE_TEXT])
{
    tg_schedule same = *schedule;
    same.chunk = 0;
    schedule_text(tuner->variant, &same, text);
}

static struct ready *find_ready(struct tuner *tuner, const char *text)
{
    for (uint32_t i = 0; i < tuner->n_ready; i++)
        if (strcmp(tuner->ready[i].text, text) == 0)
            return &tuner->ready[i];
    return NULL;
}

static void forget_ready(struct tuner *tuner)
{
    for (uint32_t i = 0; i < tuner->n_ready; i++)
        tg_program_free(tuner->ready[i].program);
    tuner->n_ready = 0;
}

struct jobs {
    struct tuner *tuner;
    atomic_uint next;
};

static void *worker(void *user)
{
    struct jobs *jobs = user;
    struct tuner *tuner = jobs->tuner;
    const tg_compile_options how = {.ptxas = ptxas_given(tuner->context)};
    for (uint32_t i; (i = atomic_fetch_add(&jobs->next, 1)) < tuner->n_ready;) {
        struct ready *ready = &tuner->ready[i];
        if (tg_compile(tuner->variant, &ready->schedule, tuner->target, &tuner->class, &how, &ready->program,
                       &silent_sink) != TG_OK)
            ready->program = NULL;
    }
    return NULL;
}

void tuner_prepare(struct tuner *tuner, const tg_schedule *const *schedules, uint32_t n)
{
    pthread_t threads[MAX_READY];
    struct jobs jobs = {.tuner = tuner};
    char text[SCHEDULE_TEXT];
    forget_ready(tuner);
    for (uint32_t i = 0; i < n && tuner->n_ready < MAX_READY; i++) {
        code_text(tuner, schedules[i], text);
        if (find_ready(tuner, text) || (tuner->kernel.program && strcmp(text, tuner->kernel_text) == 0))
            continue;
        struct ready *ready = &tuner->ready[tuner->n_ready++];
        *ready = (struct ready){.schedule = *schedules[i]};
        memcpy(ready->text, text, sizeof text);
    }
    uint32_t n_threads = 0;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    while (n_threads + 1 < tuner->n_ready && n_threads + 1 < cores &&
           pthread_create(&threads[n_threads], NULL, worker, &jobs) == 0)
        n_threads++;
    worker(&jobs);
    for (uint32_t i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
}

bool tuner_kernel(struct tuner *tuner, const tg_schedule *schedule)
{
    char text[SCHEDULE_TEXT];
    code_text(tuner, schedule, text);
    if (tuner->kernel.module && strcmp(text, tuner->kernel_text) == 0 &&
        schedule->chunk % tuner->kernel.program->chunk_multiple == 0)
        return true;
    kernel_free(&tuner->kernel);
    struct ready *ready = find_ready(tuner, text);
    if (!ready) {
        tuner_prepare(tuner, &schedule, 1);
        ready = find_ready(tuner, text);
    }
    if (!ready || !ready->program)
        return false;
    snprintf(tuner->kernel_text, sizeof tuner->kernel_text, "%s", text);
    tg_program *program = ready->program;
    ready->program = NULL; /* the kernel owns it now */
    *ready->text = '\0';
    return kernel_load(tuner->context, program, &tuner->kernel, &silent_sink);
}

void tuner_keep_kernel(struct tuner *tuner, const tg_schedule *schedule)
{
    struct kernel kernel;
    kernel_free(&tuner->kernel);
    if (kernel_build(tuner->context, tuner->variant, schedule, &tuner->class, &kernel, &silent_sink))
        kernel_free(&kernel);
}

void tuner_forget_kernels(struct tuner *tuner)
{
    forget_ready(tuner);
    kernel_free(&tuner->kernel);
}
