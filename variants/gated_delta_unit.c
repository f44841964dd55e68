/* variants/gated_delta_unit.c - Gated DeltaNet (gated_delta.c) with rows of q and k that are made unit rows in the kernel, as
 * Qwen3-Next calls it for prompts. */
#include "variants/delta.h"

#define VARIANT gated_delta_unit
#define VARIANT_NAME "gated-delta-unit"
#define VARIANT_TITLE "Gated DeltaNet with unit rows of q and k"
#define VARIANT_ALIASES
#define UNIT_ROWS
#include "variants/delta_given.inc"

static const struct delta_oracle how = {.log_decay = LOG_A, .dlog_decay = DA, .unit_rows = true};

#include "variants/delta.inc"
