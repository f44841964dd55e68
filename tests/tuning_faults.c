/* tests/tuning_faults.c - tg_tune on a driver one of whose calls fails: the table of the emulator's functions, with ours in
 * front, which fail when told to and count what is alive. */
#include "runtime/cuda_api.h"
#include "tests/tuning_fixture.h"

#include <stdbool.h>
#include <string.h>

enum { NO_SUCH = 999, N_KINDS = 3 };
enum { MEMORY, MODULES, EVENTS };
static struct tg_driver real;
static int n_calls, failing, alive[N_KINDS];
static const char *failed;

static bool fails(const char *name)
{
    if (n_calls++ != failing)
        return false;
    failed = name;
    return true;
}

#define FAULTY(name, parameters, arguments)                                                                            \
    static cu_result faulty_##name parameters                                                                          \
    {                                                                                                                  \
        return fails(#name) ? NO_SUCH : real.name arguments;                                                           \
    }
#define MAKES(name, kind, parameters, arguments)                                                                       \
    static cu_result faulty_##name parameters                                                                          \
    {                                                                                                                  \
        const cu_result result = fails(#name) ? NO_SUCH : real.name arguments;                                         \
        alive[kind] += result == 0;                                                                                    \
        return result;                                                                                                 \
    }
#define ENDS(name, kind, parameters, arguments)                                                                        \
    static cu_result faulty_##name parameters                                                                          \
    {                                                                                                                  \
        alive[kind]--;                                                                                                 \
        return real.name arguments;                                                                                    \
    }

MAKES(cuMemAlloc, MEMORY, (cu_pointer * address, size_t bytes), (address, bytes))
ENDS(cuMemFree, MEMORY, (cu_pointer address), (address))
MAKES(cuModuleLoadDataEx, MODULES, (cu_module * module, const void *image, unsigned int n, int *options, void **values),
      (module, image, n, options, values))
ENDS(cuModuleUnload, MODULES, (cu_module module), (module))
MAKES(cuEventCreate, EVENTS, (cu_event * event, unsigned int flags), (event, flags))
ENDS(cuEventDestroy, EVENTS, (cu_event event), (event))
FAULTY(cuModuleGetFunction, (cu_function * function, cu_module module, const char *name), (function, module, name))
FAULTY(cuCtxGetDevice, (cu_device * device), (device))
FAULTY(cuCtxSynchronize, (void), ())
FAULTY(cuFuncGetAttribute, (int *value, int attribute, cu_function function), (value, attribute, function))
FAULTY(cuLaunchKernel,
       (cu_function function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
        unsigned int bz, unsigned int shared, cu_stream stream, void **parameters, void **extra),
       (function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra))
FAULTY(cuLaunchKernelEx, (const struct cu_launch *launch, cu_function function, void **parameters, void **extra),
       (launch, function, parameters, extra))
FAULTY(cuMemcpyHtoD, (cu_pointer to, const void *from, size_t bytes), (to, from, bytes))
FAULTY(cuMemcpyDtoH, (void *to, cu_pointer from, size_t bytes), (to, from, bytes))
FAULTY(cuMemsetD8, (cu_pointer to, unsigned char value, size_t bytes), (to, value, bytes))
FAULTY(cuEventRecord, (cu_event event, cu_stream stream), (event, stream))
FAULTY(cuEventElapsedTime, (float *milliseconds, cu_event from, cu_event to), (milliseconds, from, to))

static void put_in_front(struct tg_driver *driver)
{
    real = *driver;
#define OURS(name) driver->name = faulty_##name
    OURS(cuMemAlloc), OURS(cuMemFree), OURS(cuModuleLoadDataEx), OURS(cuModuleUnload), OURS(cuEventCreate);
    OURS(cuEventDestroy), OURS(cuModuleGetFunction), OURS(cuCtxGetDevice), OURS(cuCtxSynchronize);
    OURS(cuFuncGetAttribute), OURS(cuLaunchKernel), OURS(cuLaunchKernelEx), OURS(cuMemcpyHtoD), OURS(cuMemcpyDtoH);
    OURS(cuMemsetD8), OURS(cuEventRecord), OURS(cuEventElapsedTime);
}

/* Each call fails once. Nothing stays behind, and the candidate says which it was. */
void a_driver_call_that_fails_leaves_nothing_behind(void **state)
{
    (void)state;
    tg_tune_request request = request_of(&squares);
    int n_failed = 0;
    put_in_front(machine.driver);
    for (failing = 0; failing == 0 || failed; failing++) {
        tg_tuning tuning;
        LOG(log);
        n_calls = 0;
        failed = NULL;
        const tg_status status = tg_tune(&request, &tuning, &log_sink);
        for (int kind = 0; kind < N_KINDS; kind++)
            assert_int_equal(alive[kind], 0);
        if (failed && !strstr(tuning.candidates[0].reason, failed))
            fail_msg("%s failed, and the candidate says \"%s\"", failed, tuning.candidates[0].reason);
        assert_int_equal(status == TG_OK, !failed);
        assert_int_equal(tuning.best == NULL, failed != NULL);
        n_failed += failed != NULL;
        tg_tuning_free(&tuning);
    }
    *machine.driver = real;
    assert_true(n_failed > 25);
}
