/* torch/libtorch.c - finds libtorch's functions in the process. Nothing is loaded: whoever has operators of PyTorch has
 * PyTorch. */
#include "torch/libtorch.h"

#include "program/fail.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* A function's address as another type, which ISO C has no cast for. */
static void look_up(void *library, const char *name, void *function)
{
    void *found = library ? dlsym(library, name) : NULL;
    memcpy(function, &found, sizeof found);
}

static void *find_loaded(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_NOLOAD);
}

/* PyTorch 2.13 has a function for it. Before, C++ code deletes what the other side made by `new`. */
static void find_free(struct libtorch *torch, void *library)
{
    static const char *const names[] = {"torch_delete_stable_ivalue", "_ZdlPv"};
    for (size_t i = 0; i < sizeof names / sizeof *names && !torch->free_value; i++)
        look_up(i ? RTLD_DEFAULT : library, names[i], &torch->free_value);
    if (!torch->free_value)
        look_up(library, names[1], &torch->free_value); /* in what libtorch needs */
}

/* One for CPUs alone has none of it. */
static void find_cuda(struct libtorch *torch)
{
    void *library = find_loaded("libtorch_cuda.so");
    look_up(library, "aoti_torch_get_current_cuda_stream", &torch->aoti_torch_get_current_cuda_stream);
    look_up(library, "aoti_torch_create_cuda_guard", &torch->aoti_torch_create_cuda_guard);
    look_up(library, "aoti_torch_delete_cuda_guard", &torch->aoti_torch_delete_cuda_guard);
}

tg_status libtorch_find(struct libtorch *torch, const tg_sink *sink)
{
    void *library = find_loaded("libtorch_cpu.so");
    const char *missing = NULL;
    if (!library)
        return tg_fail(sink, TG_E_UNSUPPORTED, "TG0834", NULL, "libtorch_cpu.so: expected in this process, found none");
#define FUNCTION(result, name, parameters)                                                                             \
    look_up(library, #name, &torch->name);                                                                             \
    if (!torch->name)                                                                                                  \
        missing = #name;
#include "torch/libtorch.def"
#undef FUNCTION
    find_free(torch, library);
    find_cuda(torch);
    if (!torch->free_value)
        missing = "operator delete";
    if (missing)
        return tg_fail(sink, TG_E_UNSUPPORTED, "TG0834", "operators need PyTorch 2.9 or later",
                       "libtorch_cpu.so: expected %s, found no such function", missing);
    return TG_OK;
}
