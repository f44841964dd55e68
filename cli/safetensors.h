/* cli/safetensors.h
 * Why: tensors enter and leave the command, and golden data reach the tests, as safetensors files.
 * Format: 8 bytes little-endian header length, a JSON object, then the tensors' bytes without holes
 * (https://github.com/huggingface/safetensors, "Format").
 *
 * Every function that can fail returns false and writes one sentence into `err` (which may be null
 * when err_size is 0): the file, the field, what was expected and what was found. */
#ifndef TEGULA_CLI_SAFETENSORS_H
#define TEGULA_CLI_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuning/numbers.h"

enum { ST_MAX_RANK = 8 };

struct st_tensor {
    const char *name;
    tg_num_type dtype;
    int rank;
    int64_t shape[ST_MAX_RANK];
    const void *data; /* little-endian, C order; the format does not promise any alignment */
    size_t bytes;
};

struct st_pair {
    const char *key;
    const char *value;
};

struct st_file;

int64_t st_elements(const struct st_tensor *tensor);
tg_const_array st_array(const struct st_tensor *tensor);

/* The file is read whole. Names, metadata and data live until st_close. */
bool st_open(const char *path, struct st_file **file, char *err, size_t err_size);

/* The same over memory, which stays the caller's and must outlive the file. */
bool st_parse(const void *bytes, size_t size, struct st_file **file, char *err, size_t err_size);

void st_close(struct st_file *file);

size_t st_count(const struct st_file *file);
const struct st_tensor *st_at(const struct st_file *file, size_t index); /* in header order */
const struct st_tensor *st_find(const struct st_file *file, const char *name);
const char *st_meta(const struct st_file *file, const char *key); /* null when absent */

/* What a file holds, or is to hold. */
struct st_contents {
    const struct st_tensor *tensors;
    size_t n_tensors;
    const struct st_pair *meta;
    size_t n_meta;
};

/* All or nothing: the file appears under `path` complete, or whatever was there before stays.
 * The header keeps the order given; the bytes are laid out widest element first, so that every
 * tensor is aligned to its element. */
bool st_write(const char *path, const struct st_contents *contents, char *err, size_t err_size);

#endif
