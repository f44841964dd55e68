/* runtime/cache.c - compiled programs on disk, one file a key: a line that says what it is, the key, a NUL, the bundle.
 *
 * The file's name is a 128-bit hash of the key, so any key is allowed; the key inside tells an entry that was copied to
 * another's name. A bundle carries its own version and checksum, so damage is found when it is parsed. What
 * is larger than CACHE_MOST in all goes, the entries first that were not read for longest. */
#include "runtime/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

static const char first_line[] = "tegula-cache 1\n";
static const char suffix[] = ".tgc";

enum { CACHE_MOST = 1 << 30, CACHE_KEPT = CACHE_MOST / 4 * 3, STALE_SECONDS = 3600 };

/* malloc'ed; NULL without memory. */
static char *path_of(const char *directory, const char *key)
{
    XXH128_hash_t hash = XXH3_128bits(key, strlen(key));
    char *path = NULL;
    int n = asprintf(&path, "%s/%016" PRIx64 "%016" PRIx64 "%s", directory, hash.high64, hash.low64, suffix);
    return n < 0 ? NULL : path;
}

static tg_status make_path(const char *directory, const char *key, char **path, const tg_sink *sink)
{
    if (!directory || !*directory || !key)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL, "cache: expected a directory and a key, found no %s",
                       key ? "directory" : "key");
    *path = path_of(directory, key);
    return *path ? TG_OK : tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "cache: no memory");
}

/* The parser's errors are, for a cache, warnings about one file. */
struct as_warning {
    const tg_sink *sink;
    const char *path;
};

static void emit_warning(void *user, const tg_diag *diag)
{
    const struct as_warning *to = user;
    tg_report(to->sink, TG_WARNING, "TG0832", to->path, 0, "it will be compiled and written again",
              "cache file ignored: %s", diag->message);
}

/* The bundle inside of the entry, or NULL: it is none of this key's. */
static const char *bundle_of(const char *bytes, size_t size, const char *key, size_t *n)
{
    const size_t line = strlen(first_line), head = line + strlen(key) + 1;
    if (size < head || memcmp(bytes, first_line, line) != 0 || memcmp(bytes + line, key, head - line) != 0)
        return NULL;
    *n = size - head;
    return bytes + head;
}

/* What cannot be used is as good as missing: *program stays NULL. */
static tg_status parse_entry(const char *path, const char *key, const char *bytes, size_t size, tg_program **program,
                             const tg_sink *warnings)
{
    size_t n = 0;
    const char *bundle = bundle_of(bytes, size, key, &n);
    if (!bundle) {
        (void)tg_fail(warnings, TG_E_FORMAT, "TG0832", NULL, "%s: expected an entry of this key", path);
        return TG_OK;
    }
    const tg_status status = tg_program_parse(bundle, n, program, warnings);
    if (status == TG_OK)
        (void)utimensat(AT_FDCWD, path, NULL, 0); /* read now: of the last to go */
    return status == TG_E_FORMAT || status == TG_E_VERSION ? TG_OK : status;
}

tg_status tg_cache_get(const char *directory, const char *key, tg_program **program, const tg_sink *sink)
{
    char *path = NULL, *bytes = NULL;
    size_t size = 0;
    if (!program)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL, "tg_cache_get: program is NULL");
    *program = NULL;
    tg_status status = make_path(directory, key, &path, sink);
    if (status != TG_OK)
        return status;
    struct as_warning warning = {sink, path};
    const tg_sink warnings = {emit_warning, &warning};
    status = file_read(path, FILE_CODE, &bytes, &size, &warnings);
    if (status == TG_OK && bytes)
        status = parse_entry(path, key, bytes, size, program, &warnings);
    free(bytes);
    free(path);
    return status == TG_E_FILE ? TG_OK : status;
}

/* ---- room ---- */

struct entry {
    char name[64];
    off_t size;
    time_t read;
};

struct entries {
    struct entry *at;
    size_t n, capacity;
    off_t size;
};

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* An entry, or what a writer that died has left of one. */
static bool is_ours(const char *name)
{
    const char *at = strstr(name, suffix);
    return at == name + 32 && strspn(name, "0123456789abcdef") == 32 &&
           (ends_with(name, suffix) || (at[4] == '.' && strlen(at) == 11));
}

static void add_entry(struct entries *all, const char *name, const struct stat *info)
{
    if (all->n == all->capacity) {
        const size_t capacity = all->capacity ? 2 * all->capacity : 256;
        struct entry *at = realloc(all->at, capacity * sizeof *at);
        if (!at)
            return;
        all->at = at;
        all->capacity = capacity;
    }
    struct entry *entry = &all->at[all->n++];
    snprintf(entry->name, sizeof entry->name, "%.*s", (int)sizeof entry->name - 1, name);
    entry->size = info->st_size;
    entry->read = info->st_mtime;
    all->size += info->st_size;
}

static int by_age(const void *a, const void *b)
{
    const time_t x = ((const struct entry *)a)->read, y = ((const struct entry *)b)->read;
    return (x > y) - (x < y);
}

/* Another process may do the same meanwhile: what is gone is gone. */
static void make_room(const char *directory)
{
    struct entries all = {0};
    DIR *folder = opendir(directory);
    if (!folder)
        return;
    const time_t now = time(NULL);
    for (struct dirent *d; (d = readdir(folder)) != NULL;) {
        struct stat info;
        if (!is_ours(d->d_name) || fstatat(dirfd(folder), d->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (ends_with(d->d_name, suffix))
            add_entry(&all, d->d_name, &info);
        else if (now - info.st_mtime > STALE_SECONDS)
            (void)unlinkat(dirfd(folder), d->d_name, 0);
    }
    if (all.size > CACHE_MOST) {
        qsort(all.at, all.n, sizeof *all.at, by_age);
        for (size_t i = 0; i < all.n && all.size > CACHE_KEPT; i++) {
            (void)unlinkat(dirfd(folder), all.at[i].name, 0);
            all.size -= all.at[i].size;
        }
    }
    free(all.at);
    (void)closedir(folder);
}

static tg_status write_entry(const char *path, const char *key, const void *bundle, size_t size, const tg_sink *sink)
{
    const size_t line = strlen(first_line), head = line + strlen(key) + 1;
    char *bytes = malloc(head + size);
    if (!bytes)
        return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "cache: no memory");
    memcpy(bytes, first_line, line);
    memcpy(bytes + line, key, head - line);
    memcpy(bytes + head, bundle, size);
    const tg_status status = file_replace(path, bytes, head + size, sink);
    free(bytes);
    return status;
}

tg_status tg_cache_put(const char *directory, const char *key, const tg_program *program, const tg_sink *sink)
{
    char *path = NULL;
    void *bytes = NULL;
    size_t size = 0;
    tg_status status = make_path(directory, key, &path, sink);
    if (status == TG_OK)
        status = tg_program_bytes(program, &bytes, &size, sink);
    if (status == TG_OK)
        status = file_make_parents(path, sink);
    if (status == TG_OK)
        status = write_entry(path, key, bytes, size, sink);
    if (status == TG_OK)
        make_room(directory);
    free(bytes);
    free(path);
    return status;
}
