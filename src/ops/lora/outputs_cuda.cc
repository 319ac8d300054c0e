#include "ops/lora/outputs_cuda.h"

#include "ops/device/cuda_types.h"
#include "ops/lora/lora_cuda.h"

namespace valora::ops {
namespace {

namespace cuda = kernels::cuda;

std::shared_ptr<const DeviceOutputs> make_outputs(const AdapterWeights& adapter,
                                                  at::Device device) {
  auto made = std::make_shared<DeviceOutputs>();
  std::vector<at::Tensor> vectors;
  int64_t count = 0;
  const auto each = [&](const auto& take) {
    for (const auto& [module, change] : adapter.outputs()) take(module, change);
  };
  each([&](int, const OutputChange& change) {
    for (const at::Tensor& values : {change.shift, change.gain})
      if (values.defined()) vectors.push_back(values), count += values.numel();
  });
  const at::Tensor host =
      at::empty({count}, at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
  if (count > 0) host.copy_(at::cat(vectors));
  made->values = host.to(device, /*non_blocking=*/true);
  const float* next = made->values.const_data_ptr<float>();
  const auto placed = [&](const at::Tensor& values) {
    const float* const at = values.defined() ? next : nullptr;
    if (values.defined()) next += values.numel();
    return at;
  };
  std::vector<cuda::DeviceOutputChange> table(adapter.model_modules());
  each([&](int module, const OutputChange& change) {
    cuda::DeviceOutputChange& entry = table[static_cast<size_t>(module)];
    entry.shift = placed(change.shift);
    entry.gain = placed(change.gain);
  });
  const size_t offset = made->memory.add(table);
  made->memory.copy_to(device);
  made->table = made->memory.at<cuda::DeviceOutputChange>(offset);
  return made;
}

}  // namespace

const DeviceOutputs& outputs_on_device(const AdapterWeights& adapter, at::Device device) {
  std::shared_ptr<const DeviceOutputs>& made = adapter.outputs_on_device();
  if (!made) made = make_outputs(adapter, device);
  return *made;
}

OutputPlan plan_outputs(const LoraBatch& lora, at::Device device) {
  OutputPlan plan;
  std::vector<cuda::DeviceLoraSegment> ranges;
  for (const OutputSegment& s : lora.outputs()) {
    ranges.push_back({static_cast<int32_t>(s.token_begin), static_cast<int32_t>(s.token_end)});
    plan.segments.push_back({outputs_on_device(*s.adapter, device).table, s.coefficient});
  }
  plan.ranges = cuda::plan_lora(ranges.data(), ranges.size(), /*wide=*/true);
  return plan;
}

OutputOffsets add_tables(const OutputPlan& plan, DeviceTables& memory) {
  OutputOffsets offsets{};
  offsets.segments = memory.add(plan.segments);
  offsets.tiles = memory.add(plan.ranges.expand_tiles);
  offsets.covers = memory.add(plan.ranges.covers);
  return offsets;
}

cuda::OutputTables tables_at(const OutputOffsets& offsets, const DeviceTables& memory) {
  return {memory.at<cuda::DeviceOutputSegment>(offsets.segments),
          memory.at<cuda::LoraExpandTile>(offsets.tiles), memory.at<int32_t>(offsets.covers)};
}

void change_outputs_cuda(std::span<const at::Tensor> ys, std::span<const ModuleWeight> linears,
                         const LoraBatch& lora) {
  cuda::OutputCall call;
  std::vector<at::Tensor> biases;  // until the launch
  for (size_t i = 0; i < linears.size(); ++i) {
    if (!lora.changes_output(linears[i].module)) continue;
    const Weight& weight = *linears[i].weight;
    cuda::OutputSlice& slice = call.slices[call.slice_count++];
    slice = {ys[i].data_ptr(), ys[i].stride(0), nullptr, static_cast<int32_t>(weight.out()),
             linears[i].module};
    if (!weight.bias().defined()) continue;
    biases.push_back(weight.bias().to(ys[i].scalar_type()));
    slice.bias = biases.back().const_data_ptr();
  }
  if (call.slice_count == 0) return;
  const DeviceLoraTables& step = on_device(lora, ys[0].device(), ys[0].size(0));
  call.dtype = cuda_dtype(ys[0].scalar_type());
  call.tiles = step.output_tiles;
  call.tables = step.outputs;
  check_launch(cuda::change_outputs(call, stream_of(ys[0])), "change_outputs");
}

}  // namespace valora::ops
