// Adapters' output changes in the form that CUDA kernels read, for the *_cuda.cc files.
#pragma once

#include <span>
#include <vector>

#include "kernels/cuda/output_change.h"
#include "ops/linear/linear.h"
#include "ops/step/device_tables.h"

namespace valora::ops {

// One adapter's: a table indexed by the model's modules.
struct DeviceOutputs {
  at::Tensor values;    // shifts and gains of all modules
  DeviceTables memory;  // the table
  const kernels::cuda::DeviceOutputChange* table = nullptr;
};
// The first call makes them. The adapter need not be resident.
const DeviceOutputs& outputs_on_device(const AdapterWeights& adapter, at::Device device);

// The tables of a step on the host, with the adapters' changes on the device.
struct OutputPlan {
  kernels::cuda::LoraPlan ranges;  // expand tiles and covers; no modules
  std::vector<kernels::cuda::DeviceOutputSegment> segments;
};
OutputPlan plan_outputs(const LoraBatch& lora, at::Device device);
struct OutputOffsets {
  size_t segments, tiles, covers;
};
OutputOffsets add_tables(const OutputPlan& plan, DeviceTables& memory);
kernels::cuda::OutputTables tables_at(const OutputOffsets& offsets, const DeviceTables& memory);

// ys: the results of the linears, [T, out], in any dtype of GPU kernels. Changed in place where the
// batch's adapters change them.
void change_outputs_cuda(std::span<const at::Tensor> ys, std::span<const ModuleWeight> linears,
                         const LoraBatch& lora);

}  // namespace valora::ops
