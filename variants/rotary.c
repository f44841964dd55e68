/* variants/rotary.c - pairs of channels turned by the token's position (RoPE). */
#define VARIANT rotary
#define VARIANT_NAME "rotary"
#define VARIANT_TITLE "pairs of channels turned by the position of the token"
#define PAIRS

#include "variants/rotation.inc"
