/* runtime/internal.h - shared by the files of runtime/. */
#ifndef TEGULA_RUNTIME_INTERNAL_H
#define TEGULA_RUNTIME_INTERNAL_H

#include "program/fail.h"
#include "runtime/cuda_api.h"
#include "runtime/runtime.h"

#include <stdbool.h>

/* A tensor map that a launch has made, and of what: see map.c. */
enum { MAP_PLACES = 8, MAP_KEY = 10, MAP_WORDS = 16 };
struct map_place {
    uint32_t turn;
    uint64_t key[MAP_KEY], map[MAP_WORDS];
};

struct tg_module {
    const tg_driver *driver;
    const tg_program *program;
    struct map_place *maps; /* [maps of all kernels][MAP_PLACES]; launches write them */
    uint32_t n_modules;     /* how many of the kernels are loaded */
    cu_module modules[TG_MAX_KERNELS];
    cu_function functions[TG_MAX_KERNELS];
};

/* driver.c */

/* Reports a failed call as "what: NAME: text" and yields the status that its result maps to. */
tg_status driver_fail(const tg_driver *driver, cu_result result, const char *what, const tg_sink *sink);

/* Calls a driver function; when it fails, reports it by name. Yields the status. */
#define DRIVER_CALL(driver, sink, function, ...)                                                                       \
    driver_status((driver), (driver)->function(__VA_ARGS__), #function, (sink))

tg_status driver_status(const tg_driver *driver, cu_result result, const char *what, const tg_sink *sink);

/* launch.c */

/* tg_launch with an event before each kernel and one behind the last: events[n_kernels + 1], or
 * NULL for none. */
tg_status launch_recorded(const tg_module *module, const tg_sizes *sizes, const float *scalars,
                          const tg_tensor_arg *args, uint32_t n_args, uint64_t workspace, cu_stream stream,
                          const cu_event *events, const tg_sink *sink);

/* device.c */
tg_status device_attribute(const tg_driver *driver, cu_device device, int attribute, int *value, const tg_sink *sink);
/* The device of the current context, and its compute capability: 90 is 9.0. */
tg_status current_device(const tg_driver *driver, cu_device *device, int *cc, const tg_sink *sink);

/* map.c */

/* How many tensor maps the kernels before this one have. */
uint32_t maps_before(const tg_program *program, uint32_t kernel);

/* The tensor map of a recipe for the tensor at `address` with these strides (in elements, checked), from one of the
 * recipe's MAP_PLACES, or encoded. That is the driver's work on the CPU alone: no allocation, nothing on a stream. */
cu_result map_encode(const tg_driver *driver, const tg_program *program, const tg_sizes *sizes,
                     const tg_map_desc *recipe, uint64_t address, const int64_t *stride, struct map_place *places,
                     struct cu_tensor_map *map);

/* A tensor as the kernels see it. */
struct bound {
    uint64_t address;                                         /* 0: absent */
    int64_t stride[2 + TG_MAX_AXES], extent[2 + TG_MAX_AXES]; /* extents of axes that it lacks are 1 */
    bool is_given;                                            /* named by the caller */
};

/* overlap.c */

/* No output, nor the workspace, lies where another tensor of a call does: sizes, addresses and strides are otherwise right.
 * Reports all that do. Which slots of a pool are taken is not known here: those are the caller's to keep apart. */
tg_status check_memory(const tg_program *program, const struct bound *bound, uint64_t workspace,
                       uint64_t workspace_bytes, const tg_sink *sink);

/* file.c */

/* Reads a whole regular file of at most FILE_MOST bytes. A missing one is TG_OK with *bytes NULL. *bytes is malloc'ed
 * and followed by a NUL that *size does not count. FILE_CODE: what will be executed, so that a file that belongs
 * to somebody else (but root), or that others may write, is refused. */
enum file_use { FILE_TEXT, FILE_CODE };
enum { FILE_MOST = 256 << 20 };
tg_status file_read(const char *path, enum file_use use, char **bytes, size_t *size, const tg_sink *sink);

/* Writes beside the file and renames, so that a reader sees the old or the new content, never half. Where the path is a
 * symbolic link, what it leads to is replaced. The new file is the user's alone (0600). */
tg_status file_replace(const char *path, const void *bytes, size_t size, const tg_sink *sink);

/* Creates the folders in which the file will be. */
tg_status file_make_parents(const char *path, const tg_sink *sink);

#endif
