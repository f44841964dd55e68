/* runtime/cache.c - compiled programs on disk, one bundle a key.
 *
 * The file name is a 128-bit hash of the key: long enough that two keys do not meet, and any key is
 * allowed. A bundle carries its own version and checksum, so damage is found when it is parsed. */
#include "runtime/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* malloc'ed; NULL without memory. */
static char *path_of(const char *directory, const char *key)
{
    XXH128_hash_t hash = XXH3_128bits(key, strlen(key));
    char *path = NULL;
    int n = asprintf(&path, "%s/%016" PRIx64 "%016" PRIx64 ".tgb", directory, hash.high64, hash.low64);
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

tg_status tg_cache_get(const char *directory, const char *key, tg_program **program, const tg_sink *sink)
{
    char *path = NULL, *bytes = NULL;
    size_t size = 0;
    if (!program)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL, "tg_cache_get: program is NULL");
    *program = NULL;
    tg_status status = make_path(directory, key, &path, sink);
    if (status == TG_OK)
        status = file_read(path, &bytes, &size, sink);
    if (status == TG_OK && bytes) {
        struct as_warning warning = {sink, path};
        tg_sink warnings = {emit_warning, &warning};
        status = tg_program_parse(bytes, size, program, &warnings);
        if (status == TG_E_FORMAT || status == TG_E_VERSION)
            status = TG_OK; /* *program is NULL: as good as missing */
    }
    free(bytes);
    free(path);
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
        status = file_replace(path, bytes, size, sink);
    free(bytes);
    free(path);
    return status;
}
