/* test_compile.c - the compiler without a device: every target, type and kind of width compiles,
 * and ptxas takes it without spills; what cannot be compiled is refused with its reason; the same
 * input gives the same code, on any number of threads. test_compile [--only TEXT] [--part K/N]
 * [--golden FILE] [--update] [--assembled FILE] [--record FILE] [--list] */
#include "compile/assembled.h"
#include "compile/compile.h"
#include "made.h"
#include "tests/usage.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    static struct context context;
    const char *golden = NULL, *record = NULL, *list = NULL;
    bool is_update = false;
    for (int i = 1; i < argc;) {
        const char **value = strcmp(argv[i], "--golden") == 0      ? &golden
                             : strcmp(argv[i], "--assembled") == 0 ? &record
                             : strcmp(argv[i], "--record") == 0    ? &list
                                                                   : NULL;
        const bool is_flag = strcmp(argv[i], "--update") == 0;
        is_update |= is_flag;
        if (value && i + 1 < argc)
            *value = argv[i + 1];
        if (is_flag || (value && i + 1 < argc))
            i += is_flag ? 1 : 2;
        else if (!tap_argument(argc, argv, &i))
            return usage_wrong(argv, argv[i],
                               "[--golden FILE [--update]] [--assembled FILE] [--record FILE] " TAP_USAGE);
    }
    const char *ptxas = ptxas_find(&context);
    printf("# ptxas: %s\n", ptxas ? ptxas : "none, nothing is assembled");
    assembled_begin(ptxas, record, list);
    suite_plan(golden, is_update);
    suite_refusals();
    suite_same_code();
    suite_keys();
    suite_walks(ptxas);
    suite_cancelled(ptxas);
    suite_targets(ptxas);
    made_quickly(); /* what goes wrong in any combination does so before the passes that it leaves out */
    suite_combinations();
    log_clear();
    assembled_end();
    return tap_finish();
}
