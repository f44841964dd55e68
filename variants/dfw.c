/* variants/dfw.c - linear attention with a log decay of a key dimension and one of a value dimension, as they are given (dfw.h). */
#include "variants/dfw.h"

#define VARIANT dfw
#define VARIANT_NAME "dfw"
#define VARIANT_TITLE "linear attention with log decays of key and of value dimensions"
#define LEFT "gl"
#define LEFT_DRAWN TG_DRAWN_LOG_DECAY
#define LOG2_LEFT TG_MUL(TG_KV(GL), TG_NUM(LOG2_E))
#define RIGHT "gr"
#define RIGHT_DRAWN TG_DRAWN_LOG_DECAY
#define LOG2_RIGHT TG_MUL(TG_KV(GR), TG_NUM(LOG2_E))
#define ORACLE tg_dfw_oracle
#define ORACLE_BACKWARD tg_dfw_oracle_backward

#include "variants/dfw.inc"
