/* variants/delta_net_unit.c - DeltaNet (delta_net.c) with rows of q and k that are made unit rows in the kernel. */
#include "variants/delta.h"

#define VARIANT delta_net_unit
#define VARIANT_NAME "delta-net-unit"
#define VARIANT_TITLE "DeltaNet with unit rows of q and k"
#define VARIANT_ALIASES
#define UNIT_ROWS
#define UNGATED
#define LOG2_DECAY TG_NUM(0)
#define GATES
#define GATE_TENSORS
#define DECAY(...)
#define GATE_GRADIENT_TENSORS
#define GATE_GRADIENTS

#define FINAL_STATE(tile) 0

static const struct delta_oracle how = {.unit_rows = true};

#include "variants/delta.inc"
