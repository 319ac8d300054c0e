#include "ops/merge/merge_operands_cuda.h"

#include <algorithm>

namespace valora::ops {
namespace {

namespace cuda = kernels::cuda;

constexpr int64_t kSide = 4096, kMostLinears = 16;

}  // namespace

MergeOperands::MergeOperands(const kernels::ProductShape& shape, at::Device device) {
  const int64_t linears = std::clamp(shape.n / (kSide * kSide), int64_t{1}, kMostLinears),
                outs = std::clamp(shape.n / kSide / linears, int64_t{1}, kSide),
                rank = std::max<int64_t>(shape.k, 1), factor = rank * kSide;
  const auto half = at::TensorOptions().dtype(at::kBFloat16).device(device);
  weights_ = at::empty({linears, outs, kSide}, half).uniform_(-1, 1);
  merged_ = at::empty_like(weights_);
  // Per linear: A, and B in as much memory, so that both begin aligned.
  factors_ = at::empty({linears, 2, factor}, half).uniform_(-0.01, 0.01);
  for (int64_t i = 0; i < linears; ++i) {
    const cuda::DeviceLoraModule module{{factors_[i][0].const_data_ptr(), nullptr, 0},
                                        {factors_[i][1].const_data_ptr(), nullptr, 0},
                                        static_cast<int32_t>(rank),
                                        static_cast<int32_t>(kSide),
                                        static_cast<int32_t>(outs),
                                        1};
    items_.push_back({weights_[i].const_data_ptr(), merged_[i].data_ptr(), module, 1, {}});
  }
}

MergeTable MergeOperands::table(const kernels::CudaTile& tile) const {
  MergeTable table;
  table.plan = cuda::plan_merge(cuda::Dtype::kBf16, items_.data(), items_.size(), tile);
  table.offset = table.memory.add(table.plan.merges);
  table.memory.copy_to(weights_.device());
  return table;
}

}  // namespace valora::ops
