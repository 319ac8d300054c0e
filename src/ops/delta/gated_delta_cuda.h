// The step tables read by gated_delta_cuda(), for the *_cuda.cc files.
#pragma once

#include "kernels/cuda/delta.h"
#include "ops/step/device_tables.h"
#include "ops/step/span_tables.h"

namespace valora::ops {

struct DeviceStateTables {
  kernels::cuda::StateTables tables;
  DeviceTables memory;  // holds the tables, unless they are among those of StepTables
};

// Byte offsets of a plan's arrays in DeviceTables, without the blocks.
struct StateOffsets {
  size_t spans, span_of;
};
StateOffsets add_tables(const kernels::cuda::StatePlan& plan, DeviceTables& memory);
// blocks: offset of the table of blocks.
kernels::cuda::StateTables tables_at(const StateOffsets& offsets, size_t blocks,
                                     const kernels::cuda::StatePlan& plan,
                                     const DeviceTables& memory);

}  // namespace valora::ops
