#include "ops/lora/lora_cuda.h"

#include <algorithm>

#include "ops/lora/outputs_cuda.h"

namespace valora::ops {
namespace {

using kernels::cuda::DeviceLoraFactor;
using kernels::cuda::DeviceLoraModule;
using kernels::cuda::DeviceLoraSegment;

DeviceLoraFactor owned(const Weight& w) { return {w.data().const_data_ptr(), nullptr, 0}; }

// pieces: the adapter's on the host; on_device: their copy on the device.
DeviceLoraFactor placed(const kernels::LoraFactor& factor, const void* const* pieces,
                        const void* const* on_device) {
  if (!factor.pieces) return {factor.data, nullptr, 0};
  return {nullptr, on_device + (factor.pieces - pieces),
          static_cast<int32_t>(factor.panels_per_piece * kPlainPanelRows)};
}

std::shared_ptr<const DeviceAdapter> make_table(const AdapterWeights& adapter, at::Device device) {
  auto made = std::make_shared<DeviceAdapter>();
  DeviceTables pieces;
  const size_t first =
      pieces.add(std::vector<const void*>(adapter.pieces().begin(), adapter.pieces().end()));
  pieces.copy_to(device);
  made->modules.resize(adapter.model_modules());
  for (size_t i = 0; i < made->modules.size(); ++i) {
    const kernels::LoraModule* m = adapter.module(static_cast<int>(i));
    if (!m) continue;
    DeviceLoraModule& module = made->modules[i];
    module = {{},
              {},
              static_cast<int32_t>(m->rank),
              static_cast<int32_t>(m->in),
              static_cast<int32_t>(m->out),
              m->scale};
    if (const LoraWeight* own = adapter.find(static_cast<int>(i))) {
      module.a = owned(own->a);
      module.b = owned(own->b);
    } else {
      const auto* on_device = pieces.at<const void*>(first);
      module.a = placed(m->a, adapter.pieces().data(), on_device);
      module.b = placed(m->b, adapter.pieces().data(), on_device);
    }
    made->max_rank = std::max(made->max_rank, module.rank);
  }
  const size_t modules = made->memory.add(made->modules);
  made->memory.copy_to(device);
  made->table = made->memory.at<DeviceLoraModule>(modules);
  made->pieces = std::move(pieces);
  return made;
}

std::shared_ptr<const DeviceLoraTables> make_tables(const LoraBatch& lora, at::Device device,
                                                    int64_t tokens) {
  auto made = std::make_shared<DeviceLoraTables>();
  const kernels::cuda::LoraPlan plan = plan_of(lora, device, tokens);
  const LoraOffsets offsets = add_tables(plan, made->memory);
  const OutputPlan outputs = plan_outputs(lora, device);
  const OutputOffsets output_offsets = add_tables(outputs, made->memory);
  made->memory.copy_to(device);
  made->sizes = plan.sizes;
  made->tables = tables_at(offsets, made->memory);
  made->output_tiles = outputs.ranges.sizes.expand_tiles;
  made->outputs = tables_at(output_offsets, made->memory);
  for (size_t i = 0; i < lora.segments().size(); ++i)
    made->max_rank = std::max(made->max_rank, on_device(lora.adapter(i), device).max_rank);
  return made;
}

}  // namespace

kernels::cuda::LoraPlan plan_of(const LoraBatch& lora, at::Device device, int64_t tokens,
                                bool wide) {
  std::vector<DeviceLoraSegment> segments;
  for (size_t i = 0; i < lora.segments().size(); ++i) {
    const kernels::LoraSegment& s = lora.segments()[i];
    segments.push_back({static_cast<int32_t>(s.token_begin), static_cast<int32_t>(s.token_end), 0,
                        s.coefficient, on_device(lora.adapter(i), device).table});
  }
  return kernels::cuda::plan_lora(segments.data(), segments.size(), wide,
                                  static_cast<int32_t>(tokens));
}

LoraOffsets add_tables(const kernels::cuda::LoraPlan& plan, DeviceTables& memory) {
  LoraOffsets offsets{};
  offsets.segments = memory.add(plan.segments);
  offsets.shrink_tiles = memory.add(plan.shrink_tiles);
  offsets.expand_tiles = memory.add(plan.expand_tiles);
  offsets.covers = memory.add(plan.covers);
  return offsets;
}

kernels::cuda::LoraTables tables_at(const LoraOffsets& offsets, const DeviceTables& memory) {
  return {memory.at<DeviceLoraSegment>(offsets.segments),
          memory.at<kernels::cuda::LoraShrinkTile>(offsets.shrink_tiles),
          memory.at<kernels::cuda::LoraExpandTile>(offsets.expand_tiles),
          memory.at<int32_t>(offsets.covers)};
}

const DeviceAdapter& on_device(const AdapterWeights& adapter, at::Device device) {
  std::shared_ptr<const DeviceAdapter>& made = adapter.on_device();
  if (!made) made = make_table(adapter, device);
  return *made;
}

const DeviceLoraTables& on_device(const LoraBatch& lora, at::Device device, int64_t tokens) {
  std::shared_ptr<const DeviceLoraTables>& made = lora.on_device();
  if (!made) made = make_tables(lora, device, tokens);
  return *made;
}

}  // namespace valora::ops
