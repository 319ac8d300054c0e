// Adapters as the CUDA kernels read them, for the *_cuda.cc files.
#pragma once

#include <vector>

#include "kernels/cuda/lora.h"
#include "ops/device_tables.h"
#include "ops/lora.h"

namespace valora::ops {

// One adapter: a table by module of the model.
struct DeviceAdapter {
  std::vector<kernels::cuda::DeviceLoraModule> modules;  // pointers to the device
  DeviceTables memory, pieces;
  const kernels::cuda::DeviceLoraModule* table = nullptr;  // the same on the device
  int32_t max_rank = 0;
};

// The segments of a step.
struct DeviceLoraTables {
  kernels::cuda::LoraSizes sizes;
  kernels::cuda::LoraTables tables;
  DeviceTables memory;
  int32_t max_rank = 0;
};

// The plan of a step, with the adapters' tables on the device.
// wide: in tiles of kWideLoraTile tokens.
kernels::cuda::LoraPlan plan_of(const LoraBatch& lora, at::Device device, bool wide = false);
struct LoraOffsets {
  size_t segments, shrink_tiles, expand_tiles, covers;
};
LoraOffsets add_tables(const kernels::cuda::LoraPlan& plan, DeviceTables& memory);
kernels::cuda::LoraTables tables_at(const LoraOffsets& offsets, const DeviceTables& memory);

// Both are made by the first call. The adapter must be resident.
const DeviceAdapter& on_device(const AdapterWeights& adapter, at::Device device);
const DeviceLoraTables& on_device(const LoraBatch& lora, at::Device device);

}  // namespace valora::ops
