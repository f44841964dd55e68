/* tests/runtime_fixture.c - see the header. */
#include "tests/runtime_fixture.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char ptx[] = ".version 7.0\n.target sm_80\n";

struct fake_state *fake;
tg_driver *driver;

/* ---- the library's allocations are counted: the linker sends them here (--wrap) ---- */

int n_mallocs;
#define SHOWN __attribute__((visibility("default"))) /* the linker takes libraries' calls for calls of these */
void *__real_malloc(size_t size);
SHOWN void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
SHOWN void *__wrap_calloc(size_t n, size_t size);

void *__wrap_malloc(size_t size)
{
    n_mallocs++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    n_mallocs++;
    return __real_calloc(n, size);
}

/* ---- every test starts with a healthy Hopper ---- */

int setup(void **state)
{
    (void)state;
    void *library = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    fake = library ? dlsym(library, "fake_state") : NULL;
    if (!fake)
        return -1;
    memset(fake, 0, sizeof *fake);
    fake->cc_major = 9;
    fake->shared_optin = 232448;
    fake->max_threads = fake->function_threads = 1024;
    fake->error_text = "an illegal memory access was encountered";
    return tg_driver_open(FAKE_CUDA, &driver, NULL);
}

int teardown(void **state)
{
    (void)state;
    tg_driver_close(driver);
    return fake->n_modules || fake->n_events || fake->n_allocations; /* leaks */
}

void sample_call(tg_tensor_arg *args)
{
    for (uint64_t i = 0; i < N_ARGS; i++)
        args[i] = (tg_tensor_arg){.name = sample_tensors[i].name, .address = APART * (i + 1)};
}

tg_module *load_program(const tg_program *p)
{
    tg_module *module;
    assert_int_equal(tg_load(driver, p, &module, NULL), TG_OK);
    fake->n_values = (int)p->kernels[0].n_args;
    for (int i = 0; i < fake->n_values; i++)
        fake->value_bytes[i] = sample_value_bytes(&p->kernels[0].args[i]);
    fake->log[0] = '\0';
    return module;
}

tg_tensor_arg *arg_named(tg_tensor_arg *args, const char *name)
{
    while (strcmp(args->name, name) != 0)
        args++;
    return args;
}

uint32_t whole_signature(const tg_program *p, tg_tensor_arg *args)
{
    uint32_t n = 0;
    for (; p->tensors[n].flags & (TG_IN | TG_OUT); n++)
        args[n] = (tg_tensor_arg){.name = p->tensors[n].name, .address = APART * (n + 1)};
    return n;
}

uint64_t value_of(const tg_program *p, tg_arg_kind kind, int index, uint32_t axis)
{
    const tg_kernel *kernel = &p->kernels[0];
    for (uint32_t i = 0; i < kernel->n_args; i++)
        if (kernel->args[i].kind == kind && kernel->args[i].index == index && kernel->args[i].axis == axis)
            return fake->values[i];
    fail_msg("no parameter of kind %d, index %d, axis %u", (int)kind, index, axis);
    return 0;
}
