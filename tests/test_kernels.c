/* test_kernels.c - the kernels that the compiler makes, run and judged. The same file runs on the
 * emulator (in CI) and on a GPU:
 *     test_kernels --device emu|0 [--only TEXT] [--without TEXT]... [--part K/N] [--list]
 * tests/parts.sh runs all N parts at once. */
#include "kernels/harness.h"
#include "kernels/suites.h"
#include "tests/usage.h"

#include <string.h>

/* To the other parts; the thread sanitizer has nothing to find then. */
static void leave_processors(void)
{
#ifndef __SANITIZE_THREAD__
    emulator_threads(1);
#endif
}

int main(int argc, char **argv)
{
    const char *device = "emu";
    bool is_part = false;
    for (int i = 1; i < argc;) {
        is_part |= strcmp(argv[i], "--part") == 0;
        if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
            device = argv[i + 1];
            i += 2;
        } else if (!tap_argument(argc, argv, &i)) {
            return usage_wrong(argv, argv[i], "[--device emu|N] " TAP_USAGE);
        }
    }
    if (!harness_open(device, NULL))
        return 2;
    if (is_part)
        leave_processors();
    suite_cases();
    suite_family();
    suite_properties();
    suite_agree();
    suite_nan();
    suite_nan_family();
    suite_mutants();
    suite_large();
    suite_declared();
    suite_decays();
    suite_together();
    suite_alike();
    suite_carried_twice();
    suite_long_fp32();
    suite_found();
    suite_found_states();
    suite_states();
    suite_mutants_states();
    harness_close();
    return tap_finish();
}
