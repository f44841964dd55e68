/* variants/conv4.c - the causal convolution of width 4 with SiLU. */
#include "variants/conv.h"

#define VARIANT conv4
#define VARIANT_NAME "conv4"
#define VARIANT_TITLE "causal convolution of width 4 of each channel, and SiLU"

#include "variants/conv.inc"
