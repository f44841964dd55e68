/* tests/fuzz_safetensors.c
 * Why: a header comes from a stranger. Whatever the bytes, st_parse answers with one sentence or
 * with tensors that lie inside the file, and never with a crash.
 *
 *   clang -std=c11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -Icli
 *         tests/fuzz_safetensors.c cli/safetensors.c -ljansson -o fuzz_safetensors
 *   ./fuzz_safetensors -dict=tests/safetensors/header.dict NEW_INPUTS tests/safetensors/corpus
 *
 * An input that begins with 'T' is a payload size (one byte) and a header's text: the length field
 * is made to fit, so that the text can grow and shrink freely.
 * A first byte with its low bits clear also sends the input through st_open and, if it is a file,
 * through st_write and back: slower, so not for all. */
#include "safetensors.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

static volatile unsigned char sink;

static void check_message(const char *text, size_t size)
{
    size_t length = strnlen(text, size);
    REQUIRE(length > 0 && length < size);
    for (size_t i = 0; i < length; i++)
        REQUIRE((unsigned char)text[i] >= 0x20);
}

static size_t check_tensor(const struct st_file *file, size_t index, const uint8_t *data, size_t size)
{
    const struct st_tensor *tensor = st_at(file, index);
    const uint8_t *bytes = tensor->data;
    REQUIRE(st_find(file, tensor->name) == tensor);
    REQUIRE(tensor->rank >= 0 && tensor->rank <= ST_MAX_RANK);
    REQUIRE((size_t)st_elements(tensor) * tg_num_bytes(tensor->dtype) == tensor->bytes);
    if (data)
        REQUIRE(bytes >= data + 8 && tensor->bytes <= (size_t)(data + size - bytes));
    for (size_t i = 0; i < tensor->bytes; i++)
        sink = bytes[i];
    return tensor->bytes;
}

static void check_same(const struct st_file *a, const struct st_file *b)
{
    REQUIRE(st_count(a) == st_count(b));
    for (size_t i = 0; i < st_count(a); i++) {
        const struct st_tensor *x = st_at(a, i);
        const struct st_tensor *y = st_at(b, i);
        REQUIRE(strcmp(x->name, y->name) == 0 && x->dtype == y->dtype && x->rank == y->rank);
        REQUIRE(memcmp(x->shape, y->shape, sizeof(x->shape)) == 0 && x->bytes == y->bytes);
        REQUIRE(memcmp(x->data, y->data, x->bytes) == 0);
    }
}

static void check_written(const struct st_file *file)
{
    static char path[64];
    if (!path[0])
        snprintf(path, sizeof(path), "/dev/shm/fuzz_safetensors.%ld", (long)getpid());
    struct st_contents contents = {.n_tensors = st_count(file)};
    contents.tensors = contents.n_tensors ? st_at(file, 0) : NULL; /* they lie in one array */
    char err[256];
    struct st_file *again;
    REQUIRE(st_write(path, &contents, err, sizeof(err)));
    REQUIRE(st_open(path, &again, err, sizeof(err)));
    check_same(file, again);
    st_close(again);
    unlink(path);
}

static void check_opened(const struct st_file *file, const uint8_t *data, size_t size)
{
    char path[64];
    char err[256] = "";
    struct st_file *opened;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    bool ok = st_open(path, &opened, err, sizeof(err));
    close(fd);
    REQUIRE(ok == (file != NULL));
    if (!ok) {
        check_message(err, sizeof(err));
        return;
    }
    check_same(file, opened);
    st_close(opened);
    check_written(file);
}

static void check_input(const uint8_t *data, size_t size)
{
    char err[200] = "";
    struct st_file *file;
    bool ok = st_parse(data, size, &file, err, sizeof(err));
    REQUIRE(ok == (file != NULL));
    if (ok) {
        size_t total = 0;
        for (size_t i = 0; i < st_count(file); i++)
            total += check_tensor(file, i, data, size);
        REQUIRE(total <= size);
        REQUIRE(st_meta(file, "variant") == NULL || strlen(st_meta(file, "variant")) < size);
    } else {
        check_message(err, sizeof(err));
    }
    if (size > 0 && data[0] % 8 == 0)
        check_opened(file, data, size);
    st_close(file);
}

static void check_text(size_t payload, const uint8_t *text, size_t length)
{
    size_t size = 8 + length + payload;
    uint8_t *made = calloc(1, size);
    REQUIRE(made);
    for (int i = 0; i < 8; i++)
        made[i] = (uint8_t)((uint64_t)length >> (8 * i));
    if (length > 0)
        memcpy(made + 8, text, length);
    check_input(made, size);
    free(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 2 && data[0] == 'T')
        check_text(data[1], data + 2, size - 2);
    else
        check_input(data, size);
    return 0;
}
