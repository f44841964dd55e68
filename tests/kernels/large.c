#include "suites.h"
void suite_large(void) {}
