/* tests/kernels/held.c - a call of a sound program, held before one of its kernels. Whatever is damaged in that kernel, what is
 * before it is the same: it runs once, and the emulator keeps memory as it then is. Launches go through functions of ours. */
#include "damage.h"
#include "harness.h"
#include "emulator/tegula_emu.h"
#include "runtime/cuda_api.h"

#include <dlfcn.h>
#include <string.h>

static struct {
    const struct patient *patient;
    const tg_program *program;
    uint32_t kernel;
    tg_driver *machine, driver; /* the machine's, and one with functions of ours */
    tg_module *module;          /* the sound program's; NULL: not loaded */
    bool has_memory, is_reached;
    cu_function sound, damaged; /* of the kernel; NULL: not loaded so far */
} held;

/* ---- the driver's functions ---- */

/* The kernel is the first of its name, what stands in for it the next. */
static cu_result get_function(cu_function *function, cu_module module, const char *name)
{
    const cu_result result = held.machine->cuModuleGetFunction(function, module, name);
    if (strcmp(name, held.program->kernels[held.kernel].name) == 0)
        *(held.sound ? &held.damaged : &held.sound) = *function;
    return result;
}

/* What is launched: up to the kernel, where that is an error, or else from it on, with another in its place. NULL: nothing. */
static cu_function instead_of(cu_function function, cu_result *result)
{
    held.is_reached |= function == held.sound;
    *result = held.damaged ? CU_SUCCESS : CU_NO_DEVICE;
    if (function == held.sound)
        return held.damaged;
    return held.is_reached || !held.damaged ? function : NULL;
}

static cu_result launch(cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, cu_stream stream, void **parameters,
                        void **extra)
{
    cu_result result;
    function = instead_of(function, &result);
    return function ? held.machine->cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                                   shared_bytes, stream, parameters, extra)
                    : result;
}

static cu_result launch_ex(const struct cu_launch *how, cu_function function, void **parameters, void **extra)
{
    cu_result result;
    function = instead_of(function, &result);
    return function ? held.machine->cuLaunchKernelEx(how, function, parameters, extra) : result;
}

static void take_driver(void)
{
    held.machine = machine_context.machine.driver;
    held.driver = *held.machine;
    held.driver.cuModuleGetFunction = get_function;
    held.driver.cuLaunchKernel = launch;
    held.driver.cuLaunchKernelEx = launch_ex;
    machine_context.machine.driver = &held.driver;
}

/* ---- held ---- */

static bool emulator_call(const char *name)
{
    int (*function)(void);
    *(void **)&function = dlsym(machine_context.emulator, name);
    return function() == 0;
}

bool held_begin(const struct patient *patient, const tg_program *program, uint32_t kernel, uint64_t seed, int call)
{
    memset(&held, 0, sizeof held);
    held.patient = patient;
    held.program = program;
    held.kernel = kernel;
    take_driver();
    emulator_seed(seed);
    log_clear();
    if (tg_load(&held.driver, program, &held.module, &log_sink) != TG_OK)
        return false;
    held.has_memory = patient->begin(patient->user, call);
    if (!held.has_memory)
        return false;
    patient->go(patient->user, held.module);
    return held.is_reached && emulator_call("tgemu_keep");
}

/* As a program of its own. */
static tg_module *load_alone(const char *ptx)
{
    static tg_program program;
    tg_module *module;
    program = *held.program;
    program.kernels[0] = held.program->kernels[held.kernel];
    program.kernels[0].ptx = ptx;
    program.kernels[0].ptx_bytes = strlen(ptx);
    program.n_kernels = 1;
    return tg_load(&held.driver, &program, &module, &log_sink) == TG_OK ? module : NULL;
}

const char *held_go(const char *ptx)
{
    held.damaged = NULL;
    held.is_reached = false;
    log_clear();
    tg_module *const module = load_alone(ptx);
    if (!module)
        return "load";
    const char *outcome = held.patient->go(held.patient->user, held.module);
    if (!emulator_call("tgemu_return"))
        outcome = "not held";
    tg_unload(module);
    return outcome;
}

void held_end(void)
{
    if (held.has_memory)
        held.patient->end(held.patient->user);
    tg_unload(held.module);
    machine_context.machine.driver = held.machine;
}
