#include "ops/lora_cuda.h"

#include <algorithm>

namespace valora::ops {
namespace {

using kernels::cuda::DeviceLoraFactor;
using kernels::cuda::DeviceLoraModule;
using kernels::cuda::DeviceLoraSegment;

DeviceLoraFactor owned(const Weight& w) { return {w.data().const_data_ptr(), nullptr, 0}; }

// pieces: the adapter's on the host, and the same on the device.
DeviceLoraFactor placed(const kernels::LoraFactor& factor, const void* const* pieces,
                        const void* const* on_device) {
  if (!factor.pieces) return {factor.data, nullptr, 0};
  return {nullptr, on_device + (factor.pieces - pieces),
          static_cast<int32_t>(factor.panels_per_piece * kPlainPanelRows)};
}

std::shared_ptr<const DeviceAdapter> make_table(const AdapterWeights& adapter, at::Device device) {
  auto made = std::make_shared<DeviceAdapter>();
  DeviceTables pieces;
  const size_t first = pieces.add(
      std::vector<const void*>(adapter.pieces().begin(), adapter.pieces().end()));
  pieces.copy_to(device);
  const auto table = adapter.table();
  for (size_t i = 0; i < table.size(); ++i) {
    const kernels::LoraModule& m = table[i];
    DeviceLoraModule module{{}, {}, static_cast<int32_t>(m.rank), static_cast<int32_t>(m.in),
                            static_cast<int32_t>(m.out), m.scale};
    if (const LoraWeight* own = adapter.find(static_cast<int>(i))) {
      module.a = owned(own->a);
      module.b = owned(own->b);
    } else if (m.rank > 0) {
      const auto* on_device = pieces.at<const void*>(first);
      module.a = placed(m.a, adapter.pieces().data(), on_device);
      module.b = placed(m.b, adapter.pieces().data(), on_device);
    }
    made->max_rank = std::max(made->max_rank, module.rank);
    made->modules.push_back(module);
  }
  const size_t modules = made->memory.add(made->modules);
  made->memory.copy_to(device);
  made->table = made->memory.at<DeviceLoraModule>(modules);
  made->pieces = std::move(pieces);
  return made;
}

std::shared_ptr<const DeviceLoraTables> make_tables(const LoraBatch& lora, at::Device device) {
  auto made = std::make_shared<DeviceLoraTables>();
  std::vector<DeviceLoraSegment> segments;
  for (size_t i = 0; i < lora.segments().size(); ++i) {
    const kernels::LoraSegment& s = lora.segments()[i];
    const DeviceAdapter& adapter = on_device(lora.adapter(i), device);
    segments.push_back({static_cast<int32_t>(s.token_begin), static_cast<int32_t>(s.token_end), 0,
                        s.coefficient, adapter.table});
    made->max_rank = std::max(made->max_rank, adapter.max_rank);
  }
  const kernels::cuda::LoraPlan plan = kernels::cuda::plan_lora(segments.data(), segments.size());
  DeviceTables& memory = made->memory;
  const size_t segment_table = memory.add(plan.segments), shrink = memory.add(plan.shrink_tiles),
               expand = memory.add(plan.expand_tiles), covers = memory.add(plan.covers);
  memory.copy_to(device);
  made->sizes = plan.sizes;
  made->tables = {memory.at<DeviceLoraSegment>(segment_table),
                  memory.at<kernels::cuda::LoraShrinkTile>(shrink),
                  memory.at<kernels::cuda::LoraExpandTile>(expand), memory.at<int32_t>(covers)};
  return made;
}

}  // namespace

const DeviceAdapter& on_device(const AdapterWeights& adapter, at::Device device) {
  std::shared_ptr<const DeviceAdapter>& made = adapter.on_device();
  if (!made) made = make_table(adapter, device);
  return *made;
}

const DeviceLoraTables& on_device(const LoraBatch& lora, at::Device device) {
  std::shared_ptr<const DeviceLoraTables>& made = lora.on_device();
  if (!made) made = make_tables(lora, device);
  return *made;
}

}  // namespace valora::ops
