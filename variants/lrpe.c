/* variants/lrpe.c - channels turned by the token's position, real and imaginary part (LRPE of ULA and Lightning attention). */
#define VARIANT lrpe
#define VARIANT_NAME "lrpe"
#define VARIANT_TITLE "channels turned by the position of the token, real and imaginary part"

#include "variants/rotation.inc"
