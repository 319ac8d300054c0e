// Adapters in the form that CUDA kernels read, for the *_cuda.cc files.
#pragma once

#include <vector>

#include "kernels/cuda/lora.h"
#include "kernels/cuda/output_change.h"
#include "ops/lora/lora.h"
#include "ops/step/device_tables.h"

namespace valora::ops {

// One adapter: a table indexed by the model's modules.
struct DeviceAdapter {
  std::vector<kernels::cuda::DeviceLoraModule> modules;  // with device pointers
  DeviceTables memory, pieces;
  const kernels::cuda::DeviceLoraModule* table = nullptr;  // device copy of `modules`
  int32_t max_rank = 0;
};

// The segments of a step.
struct DeviceLoraTables {
  kernels::cuda::LoraSizes sizes;
  kernels::cuda::LoraTables tables;
  kernels::cuda::OutputTables outputs;
  int32_t output_tiles = 0;
  DeviceTables memory;
  int32_t max_rank = 0;
};

// The plan of a step of `tokens`, with the adapters' tables on the device. wide: use tiles of
// kWideLoraTile tokens.
kernels::cuda::LoraPlan plan_of(const LoraBatch& lora, at::Device device, int64_t tokens,
                                bool wide = false);
struct LoraOffsets {
  size_t segments, shrink_tiles, expand_tiles, covers;
};
LoraOffsets add_tables(const kernels::cuda::LoraPlan& plan, DeviceTables& memory);
kernels::cuda::LoraTables tables_at(const LoraOffsets& offsets, const DeviceTables& memory);

// The first call builds the tables. The adapter must be resident.
const DeviceAdapter& on_device(const AdapterWeights& adapter, at::Device device);
// tokens: of the step, for the tables.
const DeviceLoraTables& on_device(const LoraBatch& lora, at::Device device, int64_t tokens);

}  // namespace valora::ops
