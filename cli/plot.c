/* cli/plot.c - figures: points as text, drawn by gnuplot, for that is not what Tegula is for.
 *
 * The script has the points in it and writes to standard output, so that it can be drawn elsewhere:
 * machines with a GPU seldom have gnuplot. */
#include "plot.h"
#include "draft.h"

#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void end_series(const struct plot *plot, const tg_writer *writer)
{
    if (plot->n_series > 0)
        tg_printf(writer, "end\n");
}

void plot_series(struct plot *plot, const char *format, ...)
{
    va_list list;
    if (plot->n_series == MAX_SERIES)
        return; /* more would not be told apart: their points join the last */
    const tg_writer writer = text_writer(&plot->data);
    end_series(plot, &writer);
    va_start(list, format);
    vsnprintf(plot->titles[plot->n_series], sizeof plot->titles[0], format, list);
    va_end(list);
    tg_printf(&writer, "$s%u <<end\n", plot->n_series++);
}

void plot_point(struct plot *plot, const char *format, ...)
{
    char line[256];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    const tg_writer writer = text_writer(&plot->data);
    tg_printf(&writer, "%s\n", line);
}

void plot_curves(const struct plot *plot, const tg_writer *commands, const char *how, const char *what)
{
    for (uint32_t i = 0; i < plot->n_series; i++)
        tg_printf(commands, ", $s%u %s lc %u title '%s%s'", i, how, i + 1, plot->titles[i], what);
}

void plot_free(struct plot *plot)
{
    text_free(&plot->data);
}

static bool cannot_write(struct context *context, const char *path)
{
    complain(context, "name a file that can be written", "--svg: cannot write %s: %s", path, draft_reason());
    return false;
}

static bool begin(struct context *context, struct draft *draft, const char *path)
{
    return draft_open(draft, path) || cannot_write(context, path);
}

static bool keep(struct context *context, struct draft *draft)
{
    return draft_keep(draft) || cannot_write(context, draft->path);
}

bool plot_is_possible(struct context *context)
{
    struct draft draft;
    if (!context->options.svg)
        return true;
    const bool is_open = begin(context, &draft, context->options.svg);
    if (is_open)
        draft_end(&draft);
    return is_open;
}

static bool write_script(struct context *context, const struct plot *plot, const char *commands,
                         const struct draft *draft)
{
    FILE *file = fdopen(dup(draft->file), "w");
    if (file) {
        const tg_writer writer = file_writer(file);
        fprintf(file, "set terminal svg size 960,600 noenhanced background 'white'\n%s", text_of(&plot->data));
        end_series(plot, &writer);
        fprintf(file, "%s\n", commands);
    }
    return (file && fclose(file) == 0) || cannot_write(context, draft->path);
}

enum { NO_PROGRAM = 127, NOT_RUN = 126 };

/* Its exit status, or one of these. */
static int run_gnuplot(const struct draft *script, const struct draft *svg)
{
    char *const argv[] = {(char[]){"gnuplot"}, (char *)(uintptr_t)script->name, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, svg->file, STDOUT_FILENO);
    const int error = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        return error == ENOENT ? NO_PROGRAM : NOT_RUN;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : NOT_RUN;
}

/* Without a figure the script stays, under the figure's name. */
static int draw(struct context *context, struct draft *script, struct draft *svg)
{
    const int code = run_gnuplot(script, svg);
    if (code == 0)
        return keep(context, svg) ? CODE_OK : CODE_FAILED;
    if (!keep(context, script))
        return CODE_FAILED;
    if (code == NO_PROGRAM) {
        remark("no gnuplot on PATH (Debian: gnuplot-nox), so %s was not drawn; "
               "`gnuplot %s > %s` does it, here or elsewhere",
               svg->path, script->path, svg->path);
        return CODE_OK;
    }
    complain(context, "try the script by hand", "gnuplot failed on %s", script->path);
    return CODE_FAILED;
}

int plot_draw(struct context *context, const struct plot *plot, const char *commands)
{
    char name[4096];
    struct draft script, svg;
    snprintf(name, sizeof name, "%s.gp", context->options.svg);
    if (!begin(context, &script, name))
        return CODE_USAGE;
    const bool ready = write_script(context, plot, commands, &script) && begin(context, &svg, context->options.svg);
    const int code = ready ? draw(context, &script, &svg) : CODE_USAGE;
    if (ready)
        draft_end(&svg);
    draft_end(&script);
    return code;
}
