/* tests/compile/assembled.c - stands between the compiler and ptxas (linked with --wrap; see tests/CMakeLists.txt).
 *
 * A line a kernel: a hash of its module before LLVM's passes, less names and the numbers of source lines, of LLVM's version and
 * of the sources that call LLVM and ptxas; ptxas' version; registers; bytes of spills and stack. Code in which ptxas confesses
 * to have repaired something is not kept. Of a kernel that is compiled only, there is "-" for ptxas' version: LLVM has made code
 * of it. */
#include "assembled.h"

#include "assembled_id.h"
#include "compiler/lower.h"
#include "tests/kernels/tap.h"
#include "tests/made.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

bool __real_lower_assemble(const struct plan *p, const char *ptxas, bool strict, struct lowered *out);
bool __wrap_lower_assemble(const struct plan *p, const char *ptxas, bool strict, struct lowered *out);

enum { KEY = MADE_HASH + 15 };
static const char only_code[] = "-"; /* in place of a version */

struct line {
    char key[KEY]; /* hash and version */
    uint32_t registers, spill_bytes;
};

static struct line *lines; /* sorted */
static size_t n_lines;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of lines */
static char version[KEY - MADE_HASH];
static int own = -1, listed = -1; /* files */
static unsigned percent;
static uint64_t seed;
static enum assembled_what asked = ASSEMBLED_NOTHING;
static atomic_uint n_recorded, n_again, n_new;

/* ---- the record ---- */

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct line *)a)->key, ((const struct line *)b)->key);
}

static bool add_line(const struct line *line)
{
    struct line *more = realloc(lines, (n_lines + 1) * sizeof *lines);
    if (more) {
        lines = more;
        lines[n_lines++] = *line;
    }
    return more;
}

static void read_lines(const char *path)
{
    char hash[MADE_HASH], of[sizeof version];
    struct line line;
    FILE *file = fopen(path, "r");
    while (file && fscanf(file, "%32s %14s %u %u", hash, of, &line.registers, &line.spill_bytes) == 4) {
        snprintf(line.key, sizeof line.key, "%s %s", hash, of);
        if (!add_line(&line))
            break;
    }
    if (file)
        fclose(file);
}

static void sort_lines(void)
{
    if (n_lines)
        qsort(lines, n_lines, sizeof *lines, compare);
}

static int compare_hash(const void *a, const void *b)
{
    return strncmp(((const struct line *)a)->key, ((const struct line *)b)->key, MADE_HASH - 1);
}

/* The line of this key; what any ptxas has assembled LLVM has made code of. */
static bool find_line(struct line *line)
{
    pthread_mutex_lock(&lock);
    int (*const same)(const void *, const void *) = asked == ASSEMBLED_CODE ? compare_hash : compare;
    const struct line *found = n_lines ? bsearch(line, lines, n_lines, sizeof *lines, same) : NULL;
    if (found)
        *line = *found;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Whole, since other processes write there. */
static void write_line(int file, const struct line *line)
{
    char text[KEY + 32];
    const int n = snprintf(text, sizeof text, "%s %u %u\n", line->key, line->registers, line->spill_bytes);
    if (file >= 0 && write(file, text, (size_t)n) != n)
        perror("assembled");
}

/* "Cuda compilation tools, release 13.0, V13.0.88"; without it nothing is kept. */
static void find_version(const char *ptxas)
{
    char command[4200], line[256];
    snprintf(command, sizeof command, "'%s' --version", ptxas);
    FILE *said = popen(command, "r");
    while (said && fgets(line, sizeof line, said)) {
        const char *at = strstr(line, ", V");
        if (at)
            sscanf(at + 3, "%14[0-9.]", version);
    }
    if (said)
        pclose(said);
}

static int open_lines(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static void read_share(void)
{
    const char *share = getenv("TEGULA_ASSEMBLE");
    char *rest = NULL;
    if (!share)
        return;
    percent = (unsigned)strtoul(share, &rest, 10);
    seed = XXH3_64bits(rest, strlen(rest));
    printf("# ptxas: %u of 100 recorded kernels are assembled again (TEGULA_ASSEMBLE=\"%s\")\n", percent, share);
}

/* ---- kernels ---- */

/* Of the thread's module. */
static _Thread_local struct line line;
static _Thread_local bool is_known; /* its numbers are those of the record */

static bool is_chosen(void)
{
    return XXH3_64bits_withSeed(line.key, MADE_HASH - 1, seed) % 100 < percent;
}

static bool is_recorded(const char module[MADE_HASH])
{
    char from[2 * MADE_HASH + sizeof TEGULA_ASSEMBLED_ID];
    line = (struct line){.key = ""};
    is_known = false;
    if (asked == ASSEMBLED_NOTHING || (asked == ASSEMBLED_CUBIN && !*version))
        return false;
    const int n = snprintf(from, sizeof from, "%s %s", module, TEGULA_ASSEMBLED_ID);
    const XXH128_hash_t hash = XXH3_128bits(from, (size_t)n);
    snprintf(line.key, sizeof line.key, "%016llx%016llx %s", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64, asked == ASSEMBLED_CODE ? only_code : version);
    is_known = find_line(&line);
    if (!is_known)
        return false;
    write_line(listed, &line);
    if (is_chosen())
        return false;
    if (asked == ASSEMBLED_CODE)
        atomic_fetch_add(&n_recorded, 1);
    return true;
}

void assembled_ask(enum assembled_what what)
{
    asked = what;
}

/* What ptxas says today is what it said. */
static bool is_as_recorded(const struct plan *p, const struct lowered *out)
{
    if (line.registers == out->registers && line.spill_bytes == out->spill_bytes && !out->confession)
        return true;
    tg_report(p->sink, TG_ERROR, "TG0591", NULL, 0, NULL,
              "kernel %s: %u registers and %u bytes of spills, recorded as %u and %u (%s)", p->name, out->registers,
              out->spill_bytes, line.registers, line.spill_bytes, line.key);
    return false;
}

/* For other processes, and for this one. */
static void keep(void)
{
    write_line(own, &line);
    write_line(listed, &line);
    pthread_mutex_lock(&lock);
    if (add_line(&line))
        sort_lines();
    pthread_mutex_unlock(&lock);
}

/* LLVM has made code of the module, and nobody is to assemble it. */
static void note_code(void)
{
    if (asked != ASSEMBLED_CODE || !*line.key)
        return;
    atomic_fetch_add(is_known ? &n_again : &n_new, 1);
    if (!is_known)
        keep();
}

static bool assemble(const struct plan *p, const char *ptxas, bool strict, struct lowered *out)
{
    bool ok = __real_lower_assemble(p, ptxas, strict, out);
    if (asked != ASSEMBLED_NOTHING) /* else it is the cubin that is wanted */
        atomic_fetch_add(is_known ? &n_again : &n_new, 1);
    if (is_known)
        ok = is_as_recorded(p, out) && ok;
    else if (ok && *line.key && !out->confession) {
        line.registers = out->registers;
        line.spill_bytes = out->spill_bytes;
        keep();
    }
    line.key[0] = '\0';
    is_known = false;
    return ok;
}

bool __wrap_lower_assemble(const struct plan *p, const char *ptxas, bool strict, struct lowered *out)
{
    if (strcmp(out->ptx, made_nothing) != 0)
        return assemble(p, ptxas, strict, out);
    atomic_fetch_add(&n_recorded, 1);
    out->registers = line.registers;
    out->spill_bytes = line.spill_bytes;
    return lower_judge(p, "", strict, out);
}

/* ---- all of it ---- */

void assembled_begin(const char *ptxas, const char *record, const char *list)
{
    const char *folder = getenv("TEGULA_MADE");
    char path[4200];
    if (ptxas)
        find_version(ptxas);
    read_share();
    if (record)
        read_lines(record);
    if (folder && *folder) {
        snprintf(path, sizeof path, "%s/assembled.txt", folder);
        read_lines(path);
        own = open_lines(path);
    }
    if (list)
        listed = open_lines(list);
    made_ask(is_recorded, note_code);
    sort_lines();
}

/* Where kernels are chosen to be made again, the others must not be made anew: a tenth of them is a minute and a half. With
 * another LLVM none is on record. */
void assembled_end(void)
{
    const unsigned found = atomic_load(&n_recorded) + atomic_load(&n_again), new = atomic_load(&n_new);
    printf("# ptxas %s: %u kernels are on record, %u of those were made again, %u are not on record%s\n",
           *version ? version : "(none)", found, atomic_load(&n_again), new, new ? ": ./dev assembled" : "");
    if (tap_begin("nearly all kernels are on record")) {
        tap_expect(!percent || !found || 20 * new <= found, "%u kernels are on record, %u are not: run ./dev assembled",
                   found, new);
        tap_end();
    }
    free(lines);
}
