/* tests/harness/flips.c - flipped bits, cuts and other bytes in an entry of the kernel cache: it is never given out. */
#include "runtime/runtime.h"
#include "tests/bundle/sample.h"
#include "tests/harness/harness.h"

#include "tests/kernels/tap.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 16, FLIPS = 200 };
static const char key[] = "the kernel of these bits";

static int n_damaged, n_whole;

static void ignore(void *user, const tg_diag *diag)
{
    int *n = user;
    *n += diag->code != NULL;
}

/* The only file of the folder. */
static bool find_entry(const char *folder, char *path, size_t size)
{
    DIR *files = opendir(folder);
    bool ok = false;
    for (const struct dirent *d; files && (d = readdir(files)) != NULL;)
        if (d->d_name[0] != '.') {
            snprintf(path, size, "%s/%.80s", folder, d->d_name);
            ok = true;
        }
    if (files)
        closedir(files);
    return ok;
}

static bool write_entry(const char *path, const unsigned char *bytes, size_t n)
{
    FILE *file = fopen(path, "r+b");
    const bool ok =
        file && fwrite(bytes, 1, n, file) == n && fflush(file) == 0 && ftruncate(fileno(file), (off_t)n) == 0;
    if (file)
        fclose(file);
    return ok;
}

/* Is a program given out? */
static bool is_given(const char *folder, int *n_messages)
{
    tg_program *program = NULL;
    *n_messages = 0;
    const tg_status status = tg_cache_get(folder, key, &program, &(tg_sink){ignore, n_messages});
    const bool given = status == TG_OK && program;
    tg_program_free(program);
    return given;
}

/* Changes at least a bit; yields how many bytes there are then. */
static size_t damage(struct harness *h, unsigned char *bytes, size_t n)
{
    const uint32_t at = harness_draw(h, (uint32_t)n), how = harness_draw(h, 4);
    const uint32_t m = 1 + harness_draw(h, 16);
    if (how == 0)
        return at;
    if (how == 1)
        for (uint32_t i = at; i < at + m && i < n; i++)
            bytes[i] ^= (unsigned char)(1 + harness_draw(h, 255));
    else
        bytes[at] ^= (unsigned char)(1 << harness_draw(h, 8));
    return n;
}

bool flips_play(struct harness *h)
{
    static unsigned char whole[MOST_BYTES], bytes[MOST_BYTES];
    const tg_program program = sample_program(".version 7.0\n.target sm_80\n");
    char folder[200], path[400];
    int n_messages;
    if (!h) {
        tap_note("%d damaged entries, %d whole ones", n_damaged, n_whole);
        return n_damaged > 0 && n_whole > 0;
    }
    snprintf(folder, sizeof folder, "%s/flips", h->folder);
    if (!tap_expect(tg_cache_put(folder, key, &program, NULL) == TG_OK && find_entry(folder, path, sizeof path),
                    "no entry"))
        return false;
    FILE *file = fopen(path, "rb");
    const size_t n = file ? fread(whole, 1, sizeof whole, file) : 0;
    if (file)
        fclose(file);
    for (int i = 0; i < FLIPS; i++) {
        memcpy(bytes, whole, n);
        const size_t left = damage(h, bytes, n);
        const bool ok = write_entry(path, bytes, left) && !is_given(folder, &n_messages) && n_messages > 0;
        if (!tap_expect(ok, "seed %llu, damage %d: a program, or no message", (unsigned long long)h->seed, i))
            break;
        n_damaged++;
    }
    n_whole +=
        tap_expect(write_entry(path, whole, n) && is_given(folder, &n_messages) && n_messages == 0, "the whole one");
    return true;
}
