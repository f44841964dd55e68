/* tests/fuzz_bundle.c - libFuzzer target: any bytes parse into a valid program or into a message.
 *
 * Inputs whose first byte is odd get the right version, size and checksum first, so that mutations reach the
 * fields behind them; the other ones exercise the header. The seeds are programs of this version: they are written
 * into the last folder of the command line, and must parse. */
#include "tests/bundle/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

enum { VERSION_AT = 8, SIZE_AT = 16, HEADER = 24, TRAILER = 8 };

static size_t n_used; /* inputs that were programs */

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
        put(bytes + VERSION_AT, TG_PROGRAM_VERSION, SIZE_AT - VERSION_AT);
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
    free(bytes);
    return 0;
}

/* A seed for either kind of input. */
static void make_seed(const char *folder, const char *name, const tg_program *program, char kind)
{
    char path[1000];
    void *bytes;
    size_t size;
    snprintf(path, sizeof path, "%s/%s-%c", folder, name, kind);
    FILE *file = fopen(path, "wb");
    if (!file || tg_program_bytes(program, &bytes, &size, NULL) != TG_OK || fputc(kind, file) == EOF ||
        fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
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
    fprintf(stderr, "the seed %s is no program\n", path);
    exit(2);
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
        for (char kind = '0'; kind <= '1'; kind++)
            make_seed((*argv)[*argc - 1], seeds[i].name, &seeds[i].program, kind);
    return 0;
}
