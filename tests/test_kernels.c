/* test_kernels.c - the kernels that the compiler makes, run and judged. The same file runs on the
 * emulator (in CI) and on a GPU:
 *     test_kernels --device emu|0 [--only TEXT] [--without TEXT]... [--part K/N] [--list]
 * tests/parts.sh runs all N parts at once. */
#include "kernels/harness.h"
#include "kernels/suites.h"

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
    if (strcmp(argv[argc - 1], "--list") == 0)
        tap_list();
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--device") == 0)
            device = argv[i + 1];
        else if (strcmp(argv[i], "--only") == 0)
            tap_only(argv[i + 1]);
        else if (strcmp(argv[i], "--without") == 0)
            tap_without(argv[i + 1]);
        else if (strcmp(argv[i], "--part") == 0 && !(is_part = tap_part(argv[i + 1])))
            return 2;
    }
    if (!harness_open(device))
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
    suite_found();
    suite_found_states();
    suite_states();
    suite_mutants_states();
    harness_close();
    return tap_finish();
}
