/* examples/variant/ula.c - a variant by its decays alone: of rows sigmoid(gx)^(1/16), of columns sigmoid(gy)^(1/4).
 *
 *     cc -std=c11 -shared -fPIC -Ibuild/include examples/variant/ula.c -o build/ula.so */
#include <tegula/variants/dfw.h>

#define VARIANT ula
#define VARIANT_NAME "ula"
#define VARIANT_TITLE "linear attention with sigmoid decays of key and of value dimensions (example)"
#define LEFT "gx"
#define LOG2_LEFT TG_DIV(TG_LOGSIG2(TG_KV(GL)), TG_NUM(16))
#define LEFT_SLOPE TG_DIV(TG_SIGMOID(TG_NEG(TG_KV(GL))), TG_NUM(16))
#define RIGHT "gy"
#define LOG2_RIGHT TG_DIV(TG_LOGSIG2(TG_KV(GR)), TG_NUM(4))
#define RIGHT_SLOPE TG_DIV(TG_SIGMOID(TG_NEG(TG_KV(GR))), TG_NUM(4))

#include <tegula/variants/dfw.inc>
/* What --load looks for. */
TG_API const tg_variant *const tg_variants[] = {&tg_ula, NULL};
