/* tests/fuzz_bundle.c - libFuzzer target: any bytes parse into a valid program or into a message.
 *
 *     clang -fsanitize=fuzzer,address,undefined -I. tests/fuzz_bundle.c
 * program/{report,sizes,verify,bundle}.c \ -lxxhash -o fuzz_bundle && ./fuzz_bundle CORPUS
 * tests/bundle/seeds
 *
 * Inputs whose first byte is odd get the right size and checksum first, so that mutations reach the
 * fields behind them; the other ones exercise the header. */
#include "program/program.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SIZE_AT = 16, HEADER = 24, TRAILER = 8 };

static void put_u64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
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
        memcpy(bytes, "TEGULA\r\n\3\0\0\0\0\0\0\0", SIZE_AT); /* TG_PROGRAM_VERSION */
        put_u64(bytes + SIZE_AT, n);
        put_u64(bytes + n - TRAILER, XXH64(bytes, n - TRAILER, 0));
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
