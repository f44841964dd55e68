/* driver.h - the state behind the cu* functions, shared by driver.c (device, memory, streams) and
 * program.c (modules, launches). It is the one mutable global: the driver ABI has no other place
 * for it. */
#ifndef DRIVER_H
#define DRIVER_H

#include "cuda_abi.h"
#include "emu.h"

#define API __attribute__((visibility("default")))

enum { DEFAULT_SHARED = 48 * 1024 };

struct context {
    u32 retained; /* cuDevicePrimaryCtxRetain without release */
};

struct driver {
    bool is_initialized;
    struct tgemu_config config;
    struct tgemu_counters last, total;
    struct memory memory;
    struct module *modules;
    struct module *idle; /* unloaded, the last one first: their text may come again */
    struct context context;
    struct report report;
    CUresult report_result; /* the error that the report explains */
    CUresult sticky;
    u64 n_launches; /* since tgemu_configure or tgemu_reset */
};

extern struct driver driver;

void driver_lock(void);
CUresult driver_unlock(CUresult result);
CUresult driver_error(CUresult result, const char *format, ...) __attribute__((format(printf, 2, 3)));
CUresult driver_check(bool needs_context);
void driver_clear(void);
void driver_forget_errors(void);
void driver_retire(struct module *m); /* one that is in no list any more */

/* From here to `return driver_unlock(result)` the driver is locked and usable. */
#define BEGIN(needs_context)                                                                                           \
    driver_lock();                                                                                                     \
    CUresult result = driver_check(needs_context);                                                                     \
    if (result)                                                                                                        \
        return driver_unlock(result);

#endif
