/* cli/progress.c - a line on stderr for work that lasts longer than a second.
 * A thread of its own prints it, because what takes long is one call: into LLVM, into the driver,
 * or into the emulator, which runs a whole kernel in it. */
#include "cli.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct progress {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    char text[200];
    double start;
    int depth; /* of begin and end */
    bool is_done, is_shown, is_terminal;
};

static const double silence = 1.0;        /* seconds before the first line */
static const double terminal_pause = 0.2; /* between renewals of one line */
static const double log_pause = 5.0;      /* between lines in a log */

static void wait_for(struct progress *p, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    const double nanoseconds = (double)until.tv_nsec + 1e9 * seconds;
    until.tv_sec += (time_t)(nanoseconds / 1e9);
    until.tv_nsec = (long)(nanoseconds - 1e9 * (double)(time_t)(nanoseconds / 1e9));
    pthread_cond_timedwait(&p->wake, &p->lock, &until);
}

static void *ticker(void *user)
{
    struct progress *p = user;
    double next = p->start + silence;
    pthread_mutex_lock(&p->lock);
    while (!p->is_done) {
        double time = now();
        if (time < next) {
            wait_for(p, next - time);
            continue;
        }
        fflush(stdout); /* both may be one file */
        fprintf(stderr, p->is_terminal ? "\r\033[K%.88s (%.0f s)" : "%s (%.0f s)\n", p->text, time - p->start);
        p->is_shown = p->is_terminal;
        next = time + (p->is_terminal ? terminal_pause : log_pause);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void set_text(struct progress *p, const char *format, va_list list)
{
    pthread_mutex_lock(&p->lock);
    vsnprintf(p->text, sizeof p->text, format, list);
    pthread_mutex_unlock(&p->lock);
}

static struct progress *start(void)
{
    struct progress *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->start = now();
    p->is_terminal = isatty(STDERR_FILENO);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    if (pthread_create(&p->thread, NULL, ticker, p) == 0)
        return p;
    free(p);
    return NULL; /* work goes on without it */
}

void progress_begin(struct context *context, const char *format, ...)
{
    va_list list;
    if (!context->progress)
        context->progress = start();
    if (!context->progress)
        return;
    context->progress->depth++;
    va_start(list, format);
    set_text(context->progress, format, list);
    va_end(list);
}

void progress(struct context *context, const char *format, ...)
{
    va_list list;
    if (!context->progress)
        return;
    va_start(list, format);
    set_text(context->progress, format, list);
    va_end(list);
}

void progress_hide(struct context *context)
{
    struct progress *p = context->progress;
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    if (p->is_shown)
        fputs("\r\033[K", stderr);
    p->is_shown = false;
    pthread_mutex_unlock(&p->lock);
}

void progress_end(struct context *context)
{
    struct progress *p = context->progress;
    if (!p || --p->depth > 0)
        return;
    progress_hide(context);
    pthread_mutex_lock(&p->lock);
    p->is_done = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    if (p->is_shown)
        fputs("\r\033[K", stderr);
    free(p);
    context->progress = NULL;
}
