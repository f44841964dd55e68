/* variants/nla_full.c - normalised linear attention without a causal mask: every token reads all. */
#include "variants/nla.h"

#define VARIANT nla_full
#define VARIANT_NAME "nla-full"
#define VARIANT_TITLE "normalised linear attention, a + b q.k, not causal"
#define VARIANT_ALIASES "nla_full",
#define FULL

#include "variants/nla.inc"
