/* tests/fuzz_bundle.c - libFuzzer target: any bytes parse into a valid program or set, or into a message.
 *
 * Inputs whose first byte is odd get the right version, size and checksum first, so that mutations reach the
 * fields behind them; the other ones exercise the header. The next bit says whether they are then a set. The seeds are
 * programs and sets of this version: they are written into the last folder of the command line, and must parse. */
#include "tests/bundle/sample.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

enum { VERSION_AT = 8, KIND_AT = 12, SIZE_AT = 16, HEADER = 24, TRAILER = 8 };

static size_t n_used; /* inputs that were programs or sets */

static void put(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void emit(void *user, const tg_diag *diag)
{
    int *n = user;
    *n += strlen(diag->message) > 0;
}

/* What is accepted can be used and written again to the same bytes. */
static void use(const tg_program *program, const uint8_t *bytes, size_t size)
{
    const tg_sizes sizes[] = {{1, 1, 1, 0}, {4, 16, 8191, 0}, {3, 6, 0, 0}, {INT32_MAX, INT32_MAX, INT32_MAX, 0}};
    void *again;
    size_t size_again;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (tg_sizes_check(program, &sizes[i], NULL) == TG_OK)
            (void)tg_workspace_bytes(program, &sizes[i]);
    for (uint32_t i = 0; i < program->n_tensors; i++)
        (void)(tg_tensor_source(program, i) + tg_tensor_is_slot(program, i));
    if (tg_program_bytes(program, &again, &size_again, NULL) != TG_OK || size_again != size ||
        memcmp(again, bytes, size) != 0)
        abort();
    free(again);
    n_used++;
}

/* Every choice of it is one of its programs, which takes the sizes. */
static void use_set(const tg_set *set, const uint8_t *bytes, size_t size)
{
    const tg_sizes sizes[] = {{1, 1, 1, 0}, {4, 16, 8191, 0}, {0, 6, 0, 64}, {INT32_MAX, INT32_MAX, INT32_MAX, 0}};
    void *again;
    size_t size_again;
    for (uint32_t b = 0; b < set->n_branches; b++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const int at = tg_set_pick(set, b, &sizes[i], NULL);
            if (at >= (int)set->n_programs || (at >= 0 && tg_sizes_check(&set->programs[at], &sizes[i], NULL) != TG_OK))
                abort();
        }
    const tg_program *first = &set->programs[0];
    if (tg_set_branch(set, 120, first->dqk, first->dhv, NULL) >= (int)set->n_branches ||
        tg_set_bytes(set, &again, &size_again, NULL) != TG_OK)
        abort();
    if (set->n_programs > 1 && (size_again != size || memcmp(again, bytes, size) != 0))
        abort();
    free(again);
    n_used++;
}

/* Through the reader of both kinds: `is_program` is what the reader of one program said. */
static void read_set(const uint8_t *bytes, size_t size, bool is_program)
{
    int n_messages = 0;
    tg_set *set;
    const tg_status status = tg_set_parse(bytes, size, &set, &(tg_sink){emit, &n_messages});
    if ((status == TG_OK) == (set == NULL) || (status != TG_OK && n_messages == 0) || (is_program && status != TG_OK))
        abort();
    if (status == TG_OK && !is_program)
        use_set(set, bytes, size);
    tg_set_free(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t n = size - 1;
    uint8_t *bytes = malloc(n ? n : 1);
    memcpy(bytes, data + 1, n);
    if ((data[0] & 1) && n >= HEADER + TRAILER) {
        memcpy(bytes, "TEGULA\r\n", VERSION_AT);
        put(bytes + VERSION_AT, TG_PROGRAM_VERSION, KIND_AT - VERSION_AT);
        put(bytes + KIND_AT, data[0] >> 1 & 1, SIZE_AT - KIND_AT);
        put(bytes + SIZE_AT, n, 8);
        put(bytes + n - TRAILER, XXH64(bytes, n - TRAILER, 0), 8);
    }
    int n_messages = 0;
    tg_program *program;
    tg_status status = tg_program_parse(bytes, n, &program, &(tg_sink){emit, &n_messages});
    if ((status == TG_OK) == (program == NULL) || (status != TG_OK && n_messages == 0))
        abort();
    if (status == TG_OK)
        use(program, bytes, n);
    tg_program_free(program);
    read_set(bytes, n, status == TG_OK);
    free(bytes);
    return 0;
}

/* A seed for either kind of input; frees the bytes. */
static void make_seed(const char *folder, const char *name, void *bytes, size_t size, char kind)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/%s-%c", folder, name, kind);
    FILE *file = fopen(path, "wb");
    if (!file || fputc(kind, file) == EOF || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
    uint8_t *input = malloc(size + 1);
    const size_t before = n_used;
    input[0] = (uint8_t)kind;
    memcpy(input + 1, bytes, size);
    (void)LLVMFuzzerTestOneInput(input, size + 1);
    free(input);
    free(bytes);
    if (n_used == before + 1)
        return;
    fprintf(stderr, "the seed %s is no program and no set\n", path);
    exit(2);
}

static void make_seeds_of_set(const char *folder, const char *ptx)
{
    static tg_program programs[SAMPLE_SET_PROGRAMS];
    static tg_branch branches[SAMPLE_SET_BRANCHES];
    const tg_set set = sample_set(ptx, programs, branches);
    for (char kind = '2'; kind <= '3'; kind++) {
        void *bytes;
        size_t size;
        if (tg_set_bytes(&set, &bytes, &size, NULL) != TG_OK)
            exit(2);
        make_seed(folder, "set", bytes, size, kind);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char ptx[] = ".version 7.0\n.target sm_80\n";
    const struct {
        const char *name;
        tg_program program;
    } seeds[] = {{"plain", sample_program(ptx)},
                 {"rich", sample_program_rich(ptx, "cubin", 5)},
                 {"packed", sample_program_packed(ptx)},
                 {"decode", sample_program_decode(ptx)},
                 {"maps", sample_program_maps(ptx)}};
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        for (char kind = '0'; kind <= '1'; kind++) {
            void *bytes;
            size_t size;
            if (tg_program_bytes(&seeds[i].program, &bytes, &size, NULL) != TG_OK)
                exit(2);
            make_seed((*argv)[*argc - 1], seeds[i].name, bytes, size, kind);
        }
    make_seeds_of_set((*argv)[*argc - 1], ptx);
    return 0;
}
