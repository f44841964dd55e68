/* variants/nla.c - normalised linear attention, causal: token i reads itself and those before it. */
#include "variants/nla.h"

#define VARIANT nla
#define VARIANT_NAME "nla"
#define VARIANT_TITLE "normalised linear attention, a + b q.k"
#define VARIANT_ALIASES

#include "variants/nla.inc"
