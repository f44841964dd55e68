/* runtime/wisdom.c - what tuning has found out, as text people can read, merge and edit.
 *
 *     tegula-wisdom 1
 *     mlstm-sig | NVIDIA H200 | 90 bf16 | dqk 128 dhv 256 | B 4 NH 16 T 8192 | walk stages=3 | L 64
 * | 431000 ns
 *
 * Times are whole nanoseconds because a decimal point would depend on the locale of the process.
 * Lines that start with '#' are kept. A line that does not parse is reported and left out; no
 * result depends on wisdom, only the time it takes. Writers lock a file beside it and rename,
 * readers need no lock. A program may also bring such a text along. */
#include "runtime/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static const char first_line[] = "tegula-wisdom 1";

static const double ns_per_ms = 1e6;

/* ---- one line ---- */

static bool is_field_text(const char *text, size_t capacity)
{
    if (!memchr(text, '\0', capacity) || *text == '\0' || *text == ' ' || *text == '#')
        return false;
    for (; *text; text++)
        if (*text < ' ' || *text > '~' || *text == '|')
            return false;
    return text[-1] != ' ';
}

static bool is_dtype_text(const char *text, size_t capacity)
{
    return is_field_text(text, capacity) && !strchr(text, ' ');
}

/* The one rule of what an entry may be, for entries read and entries to be written. */
static const char *wrong_field(const tg_wisdom *w)
{
    const int64_t max = INT32_MAX;
    if (!is_field_text(w->variant, sizeof w->variant))
        return "variant";
    if (!is_field_text(w->device, sizeof w->device))
        return "device";
    if (!is_dtype_text(w->dtype, sizeof w->dtype))
        return "dtype";
    if (!is_field_text(w->schedule, sizeof w->schedule))
        return "schedule";
    if (w->cc < 10 || w->cc > 9999)
        return "cc";
    if (w->dqk < 1 || w->dqk > max)
        return "dqk";
    if (w->dhv < 1 || w->dhv > max)
        return "dhv";
    if (w->batch < 1 || w->batch > max)
        return "batch";
    if (w->heads < 1 || w->heads > max)
        return "heads";
    if (w->tokens < 1 || w->tokens > max)
        return "tokens";
    if (w->chunk < 0 || w->chunk > max)
        return "chunk";
    if (!(w->milliseconds * ns_per_ms >= 1.0 && w->milliseconds < 1e9))
        return "milliseconds";
    return NULL;
}

static void print_entry(FILE *out, const tg_wisdom *w)
{
    fprintf(out,
            "%s | %s | %d %s | dqk %" PRId64 " dhv %" PRId64 " | B %" PRId64 " NH %" PRId64 " T %" PRId64
            " | %s | L %" PRId64 " | %" PRId64 " ns\n",
            w->variant, w->device, w->cc, w->dtype, w->dqk, w->dhv, w->batch, w->heads, w->tokens, w->schedule,
            w->chunk, (int64_t)llround(w->milliseconds * ns_per_ms));
}

/* Takes the text up to the next '|' (or the end) without the blanks around it. */
static bool take_text(const char **at, char *text, size_t capacity)
{
    const char *begin = *at + strspn(*at, " ");
    const char *bar = begin + strcspn(begin, "|");
    const char *end = bar;
    while (end > begin && end[-1] == ' ')
        end--;
    size_t length = (size_t)(end - begin);
    if (length >= capacity || *bar != '|')
        return false;
    memcpy(text, begin, length);
    text[length] = '\0';
    *at = bar + 1;
    return true;
}

/* Numbers are read by sscanf, which forgives blanks; %n says whether all of it was read. */
static bool parse_entry(const char *line, tg_wisdom *w)
{
    memset(w, 0, sizeof *w);
    int end = -1;
    const char *at = line;
    if (!take_text(&at, w->variant, sizeof w->variant) || !take_text(&at, w->device, sizeof w->device))
        return false;
    if (sscanf(at,
               " %9d %7[^ |] | dqk %10" SCNd64 " dhv %10" SCNd64 " | B %10" SCNd64 " NH %10" SCNd64 " T %10" SCNd64
               " |%n",
               &w->cc, w->dtype, &w->dqk, &w->dhv, &w->batch, &w->heads, &w->tokens, &end) != 7 ||
        end < 0)
        return false;
    at += end;
    end = -1;
    if (!take_text(&at, w->schedule, sizeof w->schedule))
        return false;
    int64_t nanoseconds = 0;
    int n = sscanf(at, " L %10" SCNd64 " | %16" SCNd64 " ns %n", &w->chunk, &nanoseconds, &end);
    w->milliseconds = (double)nanoseconds / ns_per_ms;
    return n == 2 && end >= 0 && at[end] == '\0' && !wrong_field(w);
}

/* ---- the text, of a file or not ---- */

struct wisdom_text {
    const char *name; /* of the file, or what messages call the text */
    const tg_sink *sink;
    char *text, *rest; /* NULL text: no file yet */
    int line;
};

/* Takes the malloc'ed text over and reads its first line. A text of another kind or version gives
 * TG_E_FORMAT: a file of it is not ours to overwrite, but a lookup can do without it, hence the
 * severity. */
static tg_status open_text(struct wisdom_text *wisdom, char *text, size_t size, tg_severity severity)
{
    const char *name = wisdom->name;
    wisdom->text = wisdom->rest = text;
    size_t length = strcspn(text, "\n");
    if (length == strlen(first_line) && memcmp(text, first_line, length) == 0) {
        wisdom->line = 1;
        wisdom->rest += length + (text[length] == '\n');
        if (memchr(text, '\0', size)) /* lines after it would silently be lost */
            tg_report(wisdom->sink, TG_WARNING, "TG0842", name, 0, NULL,
                      "%s: expected text, found a NUL byte; what follows it is left out", name);
        return TG_OK;
    }
    tg_report(wisdom->sink, severity, "TG0841", name, 1, "name another file, or remove this one",
              "%s: expected the first line \"%s\", found \"%.*s\"", name, first_line, (int)(length < 40 ? length : 40),
              text);
    return TG_E_FORMAT;
}

static tg_status open_file(struct wisdom_text *wisdom, const char *path, tg_severity severity, const tg_sink *sink)
{
    char *text;
    size_t size;
    *wisdom = (struct wisdom_text){.name = path, .sink = sink};
    tg_status status = file_read(path, FILE_TEXT, &text, &size, sink);
    if (status == TG_OK && size > 0)
        return open_text(wisdom, text, size, severity);
    free(text);
    return status;
}

/* The next line, terminated in place; NULL at the end. */
static const char *next_line(struct wisdom_text *wisdom)
{
    if (!wisdom->rest || *wisdom->rest == '\0')
        return NULL;
    char *line = wisdom->rest, *end = line + strcspn(line, "\n");
    wisdom->rest = *end == '\n' ? end + 1 : end;
    *end = '\0';
    wisdom->line++;
    return line;
}

static bool is_comment(const char *line)
{
    return *line == '#' || line[strspn(line, " \t\r")] == '\0';
}

/* Parses the line, or reports it as damaged. */
static bool read_entry(const struct wisdom_text *wisdom, const char *line, tg_wisdom *entry)
{
    if (parse_entry(line, entry))
        return true;
    tg_report(wisdom->sink, TG_WARNING, "TG0842", wisdom->name, wisdom->line,
              "tune again; the line goes when the file is next written", "%s:%d: a damaged line is left out",
              wisdom->name, wisdom->line);
    return false;
}

/* ---- lookup ---- */

static bool is_comparable(const tg_wisdom *a, const tg_wisdom *b)
{
    return strcmp(a->variant, b->variant) == 0 && strcmp(a->device, b->device) == 0 && a->cc == b->cc &&
           strcmp(a->dtype, b->dtype) == 0 && a->dqk == b->dqk && a->dhv == b->dhv;
}

static bool is_same_shape(const tg_wisdom *a, const tg_wisdom *b)
{
    return a->batch == b->batch && a->heads == b->heads && a->tokens == b->tokens;
}

static double log_size(double size)
{
    return log2(size < 1.0 ? 1.0 : size);
}

/* Length and number of sequences matter, and their ratio more than their difference. */
static double distance(const tg_wisdom *a, const tg_wisdom *b)
{
    double tokens = log_size((double)a->tokens) - log_size((double)b->tokens);
    double sequences = log_size((double)a->batch * (double)a->heads) - log_size((double)b->batch * (double)b->heads);
    return fabs(tokens) + fabs(sequences);
}

struct search {
    const tg_wisdom *wanted;
    double nearest;
    tg_wisdom *found;
    int *is_found;
};

static void take_nearer(void *user, const tg_wisdom *entry)
{
    struct search *search = user;
    const char *const device = search->wanted->device;
    tg_wisdom wanted = *search->wanted;
    snprintf(wanted.device, sizeof wanted.device, "%s", *device ? device : entry->device);
    if (!is_comparable(entry, &wanted))
        return;
    double d = distance(entry, search->wanted) + (is_same_shape(entry, search->wanted) ? -1.0 : 0.0);
    if (d >= search->nearest)
        return;
    search->nearest = d;
    *search->found = *entry;
    *search->is_found = 1;
}

typedef void visit_fn(void *user, const tg_wisdom *entry);

/* Gives the status of having opened it, but for TG_E_FORMAT: that is reported, and nothing found.
 */
static tg_status visit_and_close(struct wisdom_text *wisdom, tg_status opened, visit_fn *visit, void *user)
{
    tg_wisdom entry;
    for (const char *line; opened == TG_OK && (line = next_line(wisdom)) != NULL;)
        if (!is_comment(line) && read_entry(wisdom, line, &entry))
            visit(user, &entry);
    free(wisdom->text);
    return opened == TG_E_FORMAT ? TG_OK : opened;
}

tg_status tg_wisdom_find(const char *path, const tg_wisdom *wanted, tg_wisdom *found, int *is_found,
                         const tg_sink *sink)
{
    if (!path || !wanted || !found || !is_found)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL, "tg_wisdom_find: an argument is NULL");
    struct search search = {wanted, HUGE_VAL, found, is_found};
    struct wisdom_text wisdom;
    *is_found = 0;
    const tg_status opened = open_file(&wisdom, path, TG_WARNING, sink);
    return visit_and_close(&wisdom, opened, take_nearer, &search);
}

tg_status tg_wisdom_each(const char *text, const char *name, visit_fn *visit, void *user, const tg_sink *sink)
{
    if (!text || !name || !visit)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL, "tg_wisdom_each: an argument is NULL");
    struct wisdom_text wisdom = {.name = name, .sink = sink};
    char *copy = strdup(text); /* lines are terminated in place */
    if (!copy)
        return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "wisdom: no memory");
    const tg_status opened = open_text(&wisdom, copy, strlen(copy), TG_WARNING);
    return visit_and_close(&wisdom, opened, visit, user);
}

tg_status tg_wisdom_find_in(const char *text, const char *name, const tg_wisdom *wanted, tg_wisdom *found,
                            int *is_found, const tg_sink *sink)
{
    if (!wanted || !found || !is_found)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL, "tg_wisdom_find_in: an argument is NULL");
    struct search search = {wanted, HUGE_VAL, found, is_found};
    *is_found = 0;
    return tg_wisdom_each(text, name, take_nearer, &search, sink);
}

/* ---- adding ---- */

/* Everything worth keeping of the old file, then the new entry: it replaces one of the same shape.
 */
static tg_status print_text(struct wisdom_text *wisdom, const tg_wisdom *added, FILE *out)
{
    fprintf(out, "%s\n", first_line);
    for (const char *line; (line = next_line(wisdom)) != NULL;) {
        tg_wisdom entry;
        if (is_comment(line))
            fprintf(out, "%s\n", line);
        else if (read_entry(wisdom, line, &entry) && !(is_comparable(&entry, added) && is_same_shape(&entry, added)))
            fprintf(out, "%s\n", line);
    }
    print_entry(out, added);
    return ferror(out) ? tg_fail(wisdom->sink, TG_E_MEMORY, "TG0799", NULL, "wisdom: no memory") : TG_OK;
}

static tg_status rewrite(const char *path, const tg_wisdom *entry, const tg_sink *sink)
{
    struct wisdom_text wisdom;
    tg_status status = open_file(&wisdom, path, TG_ERROR, sink);
    char *text = NULL;
    size_t size = 0;
    FILE *out = status == TG_OK ? open_memstream(&text, &size) : NULL;
    if (status == TG_OK && !out)
        status = tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "wisdom: no memory");
    if (status == TG_OK)
        status = print_text(&wisdom, entry, out);
    if (out && fclose(out) != 0 && status == TG_OK)
        status = tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "wisdom: no memory");
    if (status == TG_OK)
        status = file_replace(path, text, size, sink);
    free(text);
    free(wisdom.text);
    return status;
}

/* Writing takes milliseconds: whoever holds the lock for so long hangs. */
enum { LOCK_MILLISECONDS = 5000, RETRY_MILLISECONDS = 10 };

static bool take_lock(int lock)
{
    const struct timespec pause = {0, RETRY_MILLISECONDS * 1000000L};
    for (int waited = 0; waited < LOCK_MILLISECONDS; waited += RETRY_MILLISECONDS) {
        if (flock(lock, LOCK_EX | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
        (void)nanosleep(&pause, NULL);
    }
    errno = EWOULDBLOCK;
    return false;
}

/* The lock is a file of its own, since the wisdom file is replaced, and the user's alone, for whoever can open it can
 * hold it. It goes with the descriptor, so a writer that dies leaves no lock behind. Yields the descriptor or -1. */
static int lock_file(const char *path, const tg_sink *sink)
{
    char *name = NULL;
    if (asprintf(&name, "%s.lock", path) < 0) {
        tg_report(sink, TG_ERROR, "TG0799", NULL, 0, NULL, "wisdom: no memory");
        return -1;
    }
    int lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    if (lock < 0 || !take_lock(lock)) {
        const char *reason = errno == EWOULDBLOCK ? "another process has held it for 5 s" : strerrordesc_np(errno);
        tg_report(sink, TG_ERROR, "TG0831", name, 0, NULL, "cannot lock %s: %s", name,
                  reason ? reason : "unknown error");
        if (lock >= 0)
            (void)close(lock);
        lock = -1;
    }
    free(name);
    return lock;
}

tg_status tg_wisdom_add(const char *path, const tg_wisdom *entry, const tg_sink *sink)
{
    if (!path || !entry)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL, "tg_wisdom_add: %s is NULL", path ? "entry" : "path");
    const char *field = wrong_field(entry);
    if (field)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0843", "text without '|', sizes and time above 0",
                       "wisdom: %s: expected a value that can be written on one line", field);
    tg_status status = file_make_parents(path, sink);
    if (status != TG_OK)
        return status;
    int lock = lock_file(path, sink);
    if (lock < 0)
        return TG_E_FILE;
    status = rewrite(path, entry, sink);
    (void)close(lock);
    return status;
}
