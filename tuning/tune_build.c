/* tuning/tune_build.c - compiling for the tuner. Compiling takes longer than timing, and one candidate
 * does not wait for another: the values of a field are compiled at once, on all cores. */
#include "tuning/tuner.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The chunk size is a run-time value: code is the same for all of them. */
static void code_text(const struct tuner *tuner, const tg_schedule *schedule, char text[TG_SCHEDULE_TEXT])
{
    tg_schedule same = *schedule;
    same.chunk = 0;
    tg_schedule_text(tuner->variant, &same, text);
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
    const tg_compile_options how = {.ptxas = tuner->request->ptxas};
    for (uint32_t i; (i = atomic_fetch_add(&jobs->next, 1)) < tuner->n_ready;) {
        struct ready *ready = &tuner->ready[i];
        const tg_sink sink = reason_sink(ready->reason);
        if (tg_compile(tuner->variant, &ready->schedule, tuner->target, &tuner->class, &how, &ready->program, &sink) !=
            TG_OK)
            ready->program = NULL;
    }
    return NULL;
}

void tuner_prepare(struct tuner *tuner, const tg_schedule *const *schedules, uint32_t n)
{
    pthread_t threads[MAX_READY];
    struct jobs jobs = {.tuner = tuner};
    char text[TG_SCHEDULE_TEXT];
    forget_ready(tuner);
    for (uint32_t i = 0; i < n && tuner->n_ready < MAX_READY; i++) {
        code_text(tuner, schedules[i], text);
        if (find_ready(tuner, text) || (tuner->program && strcmp(text, tuner->program_text) == 0))
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

static void forget_program(struct tuner *tuner)
{
    if (tuner->module)
        tg_unload(tuner->module);
    tg_program_free(tuner->program);
    tuner->module = NULL;
    tuner->program = NULL;
}

bool tuner_load(struct tuner *tuner, const tg_schedule *schedule, char reason[TG_REASON])
{
    char text[TG_SCHEDULE_TEXT];
    const tg_sink sink = reason_sink(reason);
    code_text(tuner, schedule, text);
    if (tuner->module && strcmp(text, tuner->program_text) == 0 &&
        schedule->chunk % tuner->program->chunk_multiple == 0)
        return true;
    forget_program(tuner);
    struct ready *ready = find_ready(tuner, text);
    if (!ready) {
        tuner_prepare(tuner, &schedule, 1);
        ready = find_ready(tuner, text);
    }
    if (!ready || !ready->program) {
        snprintf(reason, TG_REASON, "%s", ready ? ready->reason : "no room for its code");
        return false;
    }
    memcpy(tuner->program_text, text, sizeof text);
    tuner->program = ready->program;
    ready->program = NULL;
    *ready->text = '\0';
    if (tg_load(tuner->request->machine->driver, tuner->program, &tuner->module, &sink) == TG_OK)
        return true;
    tuner->module = NULL;
    return false;
}

void tuner_forget_programs(struct tuner *tuner)
{
    forget_ready(tuner);
    forget_program(tuner);
}
