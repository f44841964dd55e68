#include "suites.h"
void suite_mutants(void) {}
