/* variants/conv4_bias.c - the causal convolution of width 4 with a bias, and SiLU. */
#include "variants/conv.h"

#define VARIANT conv4_bias
#define VARIANT_NAME "conv4-bias"
#define VARIANT_TITLE "causal convolution of width 4 of each channel with a bias, and SiLU"
#define BIASED

#include "variants/conv.inc"
