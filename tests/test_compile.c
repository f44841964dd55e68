/* test_compile.c - the compiler without a device: every target, type and kind of width compiles,
 * and ptxas takes it without spills; what cannot be compiled is refused with its reason; the same
 * input gives the same code, on any number of threads. test_compile [--only TEXT] [--part K/N]
 * [--golden FILE] [--update] [--assembled FILE] [--record FILE] [--list] */
#include "compile/assembled.h"
#include "compile/compile.h"
#include "made.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    static struct context context;
    const char *golden = NULL, *record = NULL, *list = NULL;
    bool is_update = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--update") == 0)
            is_update = true;
        else if (strcmp(argv[i], "--list") == 0)
            tap_list();
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            tap_only(argv[++i]);
        else if (strcmp(argv[i], "--part") == 0 && i + 1 < argc && tap_part(argv[i + 1]))
            i++;
        else if (strcmp(argv[i], "--golden") == 0 && i + 1 < argc)
            golden = argv[++i];
        else if (strcmp(argv[i], "--assembled") == 0 && i + 1 < argc)
            record = argv[++i];
        else if (strcmp(argv[i], "--record") == 0 && i + 1 < argc)
            list = argv[++i];
    }
    const char *ptxas = ptxas_find(&context);
    printf("# ptxas: %s\n", ptxas ? ptxas : "none, nothing is assembled");
    if (ptxas)
        assembled_begin(ptxas, record, list);
    suite_plan(golden, is_update);
    suite_refusals();
    suite_same_code();
    suite_walks(ptxas);
    suite_targets(ptxas);
    made_quickly(); /* what goes wrong in any combination does so before the passes that it leaves out */
    suite_combinations();
    log_clear();
    if (ptxas)
        assembled_end();
    return tap_finish();
}
