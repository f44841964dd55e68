/* cli/safetensors.c
 * One idea: a file is data from a stranger. Every number in the header is checked before it is
 * used, so that a file that opens can be read without further care. */
#include "safetensors.h"
#include "draft.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors data are little-endian and are used in place"
#endif

/* The limit of the reference implementation; it bounds what a bad length can make us parse. */
static const uint64_t max_header_bytes = 100 * 1000 * 1000;

enum { LENGTH_BYTES = 8, SHAPE_TEXT = ST_MAX_RANK * 22 + 3 };

struct st_file {
    struct st_tensor *tensors;
    size_t n_tensors;
    json_t *header; /* owns names and metadata */
    const unsigned char *data;
    size_t data_bytes;
    void *own; /* null when the bytes are the caller's */
};

struct report {
    char *text;
    size_t size;
};

int64_t st_elements(const struct st_tensor *tensor)
{
    int64_t n = 1;
    for (int d = 0; d < tensor->rank; d++)
        n *= tensor->shape[d];
    return n;
}

tg_const_array st_array(const struct st_tensor *tensor)
{
    return (tg_const_array){tensor->data, tensor->dtype, (size_t)st_elements(tensor)};
}

/* Names come from the file and may hold anything: control characters must not reach a terminal,
 * and a sentence is one line. */
static void hide_control_characters(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f)
            *c = '?';
}

static bool fail(const struct report *report, const char *format, ...)
{
    if (report->size > 0) {
        va_list args;
        va_start(args, format);
        vsnprintf(report->text, report->size, format, args);
        va_end(args);
        hide_control_characters(report->text);
    }
    return false;
}

static const char *kind_name(const json_t *value)
{
    if (!value)
        return "nothing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a real number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        return "null";
    }
    assert(false && "jansson has no other type");
    return "";
}

static void print_shape(char text[SHAPE_TEXT], const struct st_tensor *tensor)
{
    size_t used = 0;
    text[used++] = '[';
    for (int d = 0; d < tensor->rank; d++) {
        const char *comma = d ? ", " : "";
        used += (size_t)snprintf(text + used, SHAPE_TEXT - used, "%s%lld", comma, (long long)tensor->shape[d]);
    }
    snprintf(text + used, SHAPE_TEXT - used, "]");
}

/* The bytes that dtype and shape ask for. False when they do not fit an int64_t; so that the
 * element count fits too, a zero elsewhere in the shape does not excuse an overflow. */
static bool shape_bytes(const struct st_tensor *tensor, size_t *bytes)
{
    int64_t total = (int64_t)tg_num_bytes(tensor->dtype);
    bool is_empty = false;
    for (int d = 0; d < tensor->rank; d++) {
        if (tensor->shape[d] == 0) {
            is_empty = true;
            continue;
        }
        if (total > INT64_MAX / tensor->shape[d])
            return false;
        total *= tensor->shape[d];
    }
    *bytes = is_empty ? 0 : (size_t)total;
    return true;
}

/* ---- reading ---- */

static bool read_length(const unsigned char *bytes, size_t size, size_t *length, const struct report *report)
{
    if (size == 0)
        return fail(report, "the file is empty");
    if (size < LENGTH_BYTES)
        return fail(report, "header length: expected 8 bytes, found %zu and the end of the file", size);
    uint64_t n = 0;
    for (int i = 0; i < LENGTH_BYTES; i++)
        n |= (uint64_t)bytes[i] << (8 * i);
    if (n > size - LENGTH_BYTES)
        return fail(report,
                    "header length: %llu bytes, but only %zu follow (truncated, or not "
                    "safetensors)",
                    (unsigned long long)n, size - LENGTH_BYTES);
    if (n > max_header_bytes)
        return fail(report, "header length: expected at most %llu bytes, found %llu",
                    (unsigned long long)max_header_bytes, (unsigned long long)n);
    *length = (size_t)n;
    return true;
}

static bool parse_json(const char *text, size_t length, json_t **header, const struct report *report)
{
    if (length == 0)
        return fail(report, "header: expected a JSON object, found no bytes");
    if (text[0] != '{')
        return fail(report, "header: expected '{' as its first byte, found 0x%02x", (unsigned)(unsigned char)text[0]);
    json_error_t error;
    *header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (*header)
        return true;
    switch (json_error_code(&error)) {
    case json_error_duplicate_key:
        return fail(report, "header: expected every name once: %s", error.text);
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return fail(report, "header: names and strings must not contain NUL: %s", error.text);
    case json_error_numeric_overflow:
        return fail(report, "header: expected numbers of 64 bits: %s", error.text);
    case json_error_out_of_memory:
        return fail(report, "out of memory");
    default:
        return fail(report, "header: expected JSON: %s (line %d, column %d)", error.text, error.line, error.column);
    }
}

static bool check_metadata(const json_t *meta, const struct report *report)
{
    if (!json_is_object(meta))
        return fail(report, "__metadata__: expected an object of strings, found %s", kind_name(meta));
    json_t *object = (json_t *)meta; /* jansson's iterators predate const */
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i))
        if (!json_is_string(json_object_iter_value(i)))
            return fail(report, "__metadata__: key '%.80s': expected a string, found %s", json_object_iter_key(i),
                        kind_name(json_object_iter_value(i)));
    return true;
}

static bool read_dtype(const json_t *value, struct st_tensor *tensor, const struct report *report)
{
    if (!json_is_string(value))
        return fail(report, "tensor '%.80s': dtype: expected a string, found %s", tensor->name, kind_name(value));
    for (int d = 0; d < TG_N_NUM_TYPES; d++) {
        if (strcmp(json_string_value(value), tg_num_name((tg_num_type)d)) == 0) {
            tensor->dtype = (tg_num_type)d;
            return true;
        }
    }
    return fail(report, "tensor '%.80s': dtype: expected BF16, F16, F32, F64, I32 or I64, found '%.80s'", tensor->name,
                json_string_value(value));
}

static bool read_shape(const json_t *value, struct st_tensor *tensor, const struct report *report)
{
    if (!json_is_array(value))
        return fail(report, "tensor '%.80s': shape: expected an array of integers, found %s", tensor->name,
                    kind_name(value));
    size_t rank = json_array_size(value);
    if (rank > ST_MAX_RANK)
        return fail(report, "tensor '%.80s': shape: expected at most %d dimensions, found %zu", tensor->name,
                    (int)ST_MAX_RANK, rank);
    for (size_t d = 0; d < rank; d++) {
        const json_t *size = json_array_get(value, d);
        if (!json_is_integer(size))
            return fail(report, "tensor '%.80s': shape[%zu]: expected an integer, found %s", tensor->name, d,
                        kind_name(size));
        if (json_integer_value(size) < 0)
            return fail(report, "tensor '%.80s': shape[%zu]: expected 0 or more, found %lld", tensor->name, d,
                        (long long)json_integer_value(size));
        tensor->shape[d] = json_integer_value(size);
    }
    tensor->rank = (int)rank;
    return true;
}

static bool read_offsets(const json_t *value, size_t data_bytes, const char *name, size_t offsets[2],
                         const struct report *report)
{
    if (!json_is_array(value) || json_array_size(value) != 2)
        return fail(report, "tensor '%.80s': data_offsets: expected two integers, found %s of %zu", name,
                    kind_name(value), json_array_size(value));
    for (size_t i = 0; i < 2; i++) {
        const json_t *offset = json_array_get(value, i);
        if (!json_is_integer(offset))
            return fail(report, "tensor '%.80s': data_offsets[%zu]: expected an integer, found %s", name, i,
                        kind_name(offset));
        json_int_t at = json_integer_value(offset);
        if (at < 0 || (uint64_t)at > data_bytes)
            return fail(report,
                        "tensor '%.80s': data_offsets[%zu]: expected 0 to %zu, the bytes after "
                        "the header, found %lld",
                        name, i, data_bytes, (long long)at);
        offsets[i] = (size_t)at;
    }
    if (offsets[0] > offsets[1])
        return fail(report, "tensor '%.80s': data_offsets: expected begin <= end, found [%zu, %zu]", name, offsets[0],
                    offsets[1]);
    return true;
}

static bool read_tensor(const struct st_file *file, const json_t *entry, struct st_tensor *tensor,
                        const struct report *report)
{
    if (!json_is_object(entry))
        return fail(report, "tensor '%.80s': expected an object, found %s", tensor->name, kind_name(entry));
    size_t offsets[2] = {0, 0};
    if (!read_dtype(json_object_get(entry, "dtype"), tensor, report) ||
        !read_shape(json_object_get(entry, "shape"), tensor, report) ||
        !read_offsets(json_object_get(entry, "data_offsets"), file->data_bytes, tensor->name, offsets, report))
        return false;
    char shape[SHAPE_TEXT];
    print_shape(shape, tensor);
    if (!shape_bytes(tensor, &tensor->bytes))
        return fail(report, "tensor '%.80s': shape: %s of %s has more than 2^63 bytes", tensor->name, shape,
                    tg_num_name(tensor->dtype));
    if (tensor->bytes != offsets[1] - offsets[0])
        return fail(report,
                    "tensor '%.80s': data_offsets: expected %zu bytes for %s %s, found %zu in "
                    "[%zu, %zu]",
                    tensor->name, tensor->bytes, tg_num_name(tensor->dtype), shape, offsets[1] - offsets[0], offsets[0],
                    offsets[1]);
    tensor->data = file->data + offsets[0];
    return true;
}

static int by_position(const void *left, const void *right)
{
    const struct st_tensor *a = *(const struct st_tensor *const *)left;
    const struct st_tensor *b = *(const struct st_tensor *const *)right;
    const unsigned char *at_a = a->data;
    const unsigned char *at_b = b->data;
    if (at_a != at_b)
        return at_a < at_b ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes); /* empty tensors come first */
}

/* The format wants every byte to belong to exactly one tensor: a hole could hide data, an overlap
 * makes two names for one. The order of the names is free. */
static bool check_cover(const struct st_file *file, const struct st_tensor **sorted, const struct report *report)
{
    for (size_t i = 0; i < file->n_tensors; i++)
        sorted[i] = &file->tensors[i];
    if (file->n_tensors > 0)
        qsort(sorted, file->n_tensors, sizeof(*sorted), by_position);
    size_t end = 0;
    for (size_t i = 0; i < file->n_tensors; i++) {
        size_t begin = (size_t)((const unsigned char *)sorted[i]->data - file->data);
        if (begin < end)
            return fail(report,
                        "tensor '%.80s': data_offsets: expected to begin at %zu, found %zu: "
                        "overlaps tensor '%.80s'",
                        sorted[i]->name, end, begin, sorted[i - 1]->name);
        if (begin > end)
            return fail(report,
                        "tensor '%.80s': data_offsets: expected to begin at %zu, found %zu: "
                        "a hole of %zu bytes",
                        sorted[i]->name, end, begin, begin - end);
        end = begin + sorted[i]->bytes;
    }
    if (end != file->data_bytes)
        return fail(report, "data: expected %zu bytes, found %zu: bytes after the last tensor", end, file->data_bytes);
    return true;
}

static bool read_tensors(struct st_file *file, const struct report *report)
{
    size_t n = json_object_size(file->header);
    file->tensors = calloc(n + 1, sizeof(*file->tensors));
    if (!file->tensors)
        return fail(report, "out of memory");
    for (void *i = json_object_iter(file->header); i; i = json_object_iter_next(file->header, i)) {
        const json_t *entry = json_object_iter_value(i);
        struct st_tensor *tensor = &file->tensors[file->n_tensors];
        tensor->name = json_object_iter_key(i);
        if (strcmp(tensor->name, "__metadata__") == 0) {
            if (!check_metadata(entry, report))
                return false;
        } else {
            if (!read_tensor(file, entry, tensor, report))
                return false;
            file->n_tensors++;
        }
    }
    const struct st_tensor **sorted = calloc(n + 1, sizeof(*sorted));
    if (!sorted)
        return fail(report, "out of memory");
    bool ok = check_cover(file, sorted, report);
    free(sorted);
    return ok;
}

static bool parse(struct st_file *file, const unsigned char *bytes, size_t size, const struct report *report)
{
    size_t length = 0;
    if (!read_length(bytes, size, &length, report))
        return false;
    if (!parse_json((const char *)bytes + LENGTH_BYTES, length, &file->header, report))
        return false;
    file->data = bytes + LENGTH_BYTES + length;
    file->data_bytes = size - LENGTH_BYTES - length;
    return read_tensors(file, report);
}

bool st_parse(const void *bytes, size_t size, struct st_file **file, char *err, size_t err_size)
{
    const struct report report = {err, err_size};
    *file = NULL;
    struct st_file *made = calloc(1, sizeof(*made));
    if (!made)
        return fail(&report, "out of memory");
    if (!parse(made, bytes, size, &report)) {
        st_close(made);
        return false;
    }
    *file = made;
    return true;
}

static bool read_file(int fd, void **bytes, size_t *size, const struct report *report)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return fail(report, "cannot read: %s", strerror(errno));
    if (S_ISDIR(status.st_mode))
        return fail(report, "expected a file, found a directory");
    if (!S_ISREG(status.st_mode))
        return fail(report, "expected a regular file, found a device, pipe or socket");
    *size = (size_t)status.st_size;
    if (*size == 0)
        return fail(report, "the file is empty");
    char *at = malloc(*size);
    if (!at)
        return fail(report, "no memory for %zu bytes", *size);
    *bytes = at;
    for (size_t left = *size; left > 0;) {
        const ssize_t n = read(fd, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            free(*bytes);
            return n < 0 ? fail(report, "cannot read: %s", strerror(errno))
                         : fail(report, "it became shorter while it was read");
        }
        at += n;
        left -= (size_t)n;
    }
    return true;
}

bool st_open(const char *path, struct st_file **file, char *err, size_t err_size)
{
    const struct report report = {err, err_size};
    char why[512] = "";
    const struct report inner = {why, sizeof(why)};
    *file = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make us wait */
    if (fd < 0)
        return fail(&report, "%s: cannot open: %s", path, strerror(errno));
    void *bytes = NULL;
    size_t size = 0;
    const bool is_read = read_file(fd, &bytes, &size, &inner);
    close(fd);
    if (!is_read)
        return fail(&report, "%s: %s", path, why);
    if (!st_parse(bytes, size, file, why, sizeof(why))) {
        free(bytes);
        return fail(&report, "%s: %s", path, why);
    }
    (*file)->own = bytes;
    return true;
}

void st_close(struct st_file *file)
{
    if (!file)
        return;
    json_decref(file->header);
    free(file->tensors);
    free(file->own);
    free(file);
}

size_t st_count(const struct st_file *file)
{
    return file->n_tensors;
}

const struct st_tensor *st_at(const struct st_file *file, size_t index)
{
    assert(index < file->n_tensors && "index beyond st_count");
    return &file->tensors[index];
}

const struct st_tensor *st_find(const struct st_file *file, const char *name)
{
    for (size_t i = 0; i < file->n_tensors; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

const char *st_meta(const struct st_file *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

/* ---- writing ---- */

static bool check_tensor(const struct st_tensor *tensor, size_t index, const struct report *report)
{
    if (!tensor->name)
        return fail(report, "tensor %zu: name: expected a string, found null", index);
    if (strcmp(tensor->name, "__metadata__") == 0)
        return fail(report, "tensor %zu: name: '__metadata__' is reserved by the format", index);
    if ((int)tensor->dtype < 0 || tensor->dtype >= TG_N_NUM_TYPES)
        return fail(report, "tensor '%.80s': dtype: expected 0 to %d, found %d", tensor->name, (int)TG_N_NUM_TYPES - 1,
                    (int)tensor->dtype);
    if (tensor->rank < 0 || tensor->rank > ST_MAX_RANK)
        return fail(report, "tensor '%.80s': rank: expected 0 to %d, found %d", tensor->name, (int)ST_MAX_RANK,
                    tensor->rank);
    for (int d = 0; d < tensor->rank; d++)
        if (tensor->shape[d] < 0)
            return fail(report, "tensor '%.80s': shape[%d]: expected 0 or more, found %lld", tensor->name, d,
                        (long long)tensor->shape[d]);
    char shape[SHAPE_TEXT];
    print_shape(shape, tensor);
    size_t bytes = 0;
    if (!shape_bytes(tensor, &bytes))
        return fail(report, "tensor '%.80s': shape: %s of %s has more than 2^63 bytes", tensor->name, shape,
                    tg_num_name(tensor->dtype));
    if (bytes != tensor->bytes)
        return fail(report, "tensor '%.80s': bytes: expected %zu for %s %s, found %zu", tensor->name, bytes,
                    tg_num_name(tensor->dtype), shape, tensor->bytes);
    if (bytes > 0 && !tensor->data)
        return fail(report, "tensor '%.80s': data: expected %zu bytes, found null", tensor->name, bytes);
    return true;
}

static json_t *tensor_entry(const struct st_tensor *tensor, uint64_t begin)
{
    json_t *shape = json_array();
    for (int d = 0; d < tensor->rank; d++)
        json_array_append_new(shape, json_integer((json_int_t)tensor->shape[d]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", tg_num_name(tensor->dtype), "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)(begin + tensor->bytes));
}

/* Adds a new value under a name that must be UTF-8 and not yet taken. Takes the value over. */
static bool add_entry(json_t *object, const char *what, const char *name, json_t *value, const struct report *report)
{
    if (json_object_get(object, name)) {
        json_decref(value);
        return fail(report, "%s '%.80s': expected every name once, found it twice", what, name);
    }
    if (json_object_set_new(object, name, value) != 0)
        return fail(report, "%s '%.80s': expected names and values in UTF-8", what, name);
    return true;
}

static bool add_metadata(json_t *header, const struct st_contents *contents, const struct report *report)
{
    json_t *meta = json_object();
    json_object_set_new(header, "__metadata__", meta);
    for (size_t i = 0; i < contents->n_meta; i++) {
        const struct st_pair *pair = &contents->meta[i];
        if (!pair->key || !pair->value)
            return fail(report, "metadata %zu: expected a key and a value, found null", i);
        if (!add_entry(meta, "metadata", pair->key, json_string(pair->value), report))
            return false;
    }
    return true;
}

/* Offsets are given out to the widest elements first, so each width starts aligned. The header is
 * padded to a multiple of 8 for the same reason. */
static bool place_tensors(const struct st_contents *contents, uint64_t *begin, const struct report *report)
{
    uint64_t end = 0;
    for (size_t width = 8; width >= 2; width /= 2) {
        for (size_t i = 0; i < contents->n_tensors; i++) {
            if (tg_num_bytes(contents->tensors[i].dtype) != width)
                continue;
            begin[i] = end;
            end += contents->tensors[i].bytes;
            if (end > INT64_MAX)
                return fail(report, "tensors: expected less than 2^63 bytes in all");
        }
    }
    return true;
}

static bool fill_header(json_t *header, const struct st_contents *contents, const uint64_t *begin,
                        const struct report *report)
{
    if (contents->n_meta > 0 && !add_metadata(header, contents, report))
        return false;
    for (size_t i = 0; i < contents->n_tensors; i++) {
        const struct st_tensor *tensor = &contents->tensors[i];
        if (!add_entry(header, "tensor", tensor->name, tensor_entry(tensor, begin[i]), report))
            return false;
    }
    return true;
}

/* The length field, the JSON and its padding in one block, to be freed by the caller. */
static bool make_header(const struct st_contents *contents, const uint64_t *begin, unsigned char **block,
                        size_t *block_bytes, const struct report *report)
{
    json_t *header = json_object();
    char *text = NULL;
    bool ok = header && fill_header(header, contents, begin, report);
    if (ok) {
        text = json_dumps(header, JSON_COMPACT);
        ok = text || fail(report, "out of memory");
    }
    json_decref(header);
    if (!ok)
        return false;
    size_t used = strlen(text);
    size_t length = (used + 7) / 8 * 8;
    unsigned char *made = length <= max_header_bytes ? malloc(LENGTH_BYTES + length) : NULL;
    if (made) {
        for (int i = 0; i < LENGTH_BYTES; i++)
            made[i] = (unsigned char)((uint64_t)length >> (8 * i));
        memcpy(made + LENGTH_BYTES, text, used);
        memset(made + LENGTH_BYTES + used, ' ', length - used);
        *block = made;
        *block_bytes = LENGTH_BYTES + length;
    } else {
        fail(report, "header: no room for %zu bytes (at most %llu)", length, (unsigned long long)max_header_bytes);
    }
    free(text);
    return made != NULL;
}

static bool write_contents(const struct draft *draft, const struct st_contents *contents, const void *header,
                           size_t header_bytes)
{
    if (!draft_write(draft, header, header_bytes))
        return false;
    for (size_t width = 8; width >= 2; width /= 2) /* the order of place_tensors */
        for (size_t i = 0; i < contents->n_tensors; i++)
            if (tg_num_bytes(contents->tensors[i].dtype) == width &&
                !draft_write(draft, contents->tensors[i].data, contents->tensors[i].bytes))
                return false;
    return true;
}

static bool write_whole(const char *path, const struct st_contents *contents, const void *header, size_t header_bytes,
                        const struct report *report)
{
    struct draft draft;
    bool ok = draft_open(&draft, path);
    if (ok) {
        ok = write_contents(&draft, contents, header, header_bytes) && draft_keep(&draft);
        draft_end(&draft);
    }
    return ok || fail(report, "cannot write: %s", draft_reason());
}

static bool write_file(const char *path, const struct st_contents *contents, const struct report *report)
{
    for (size_t i = 0; i < contents->n_tensors; i++)
        if (!check_tensor(&contents->tensors[i], i, report))
            return false;
    uint64_t *begin = calloc(contents->n_tensors + 1, sizeof(*begin));
    if (!begin)
        return fail(report, "out of memory");
    unsigned char *header = NULL;
    size_t header_bytes = 0;
    bool ok = place_tensors(contents, begin, report) && make_header(contents, begin, &header, &header_bytes, report) &&
              write_whole(path, contents, header, header_bytes, report);
    free(header);
    free(begin);
    return ok;
}

bool st_write(const char *path, const struct st_contents *contents, char *err, size_t err_size)
{
    const struct report report = {err, err_size};
    char why[512] = "";
    const struct report inner = {why, sizeof(why)};
    return write_file(path, contents, &inner) || fail(&report, "%s: %s", path, why);
}
