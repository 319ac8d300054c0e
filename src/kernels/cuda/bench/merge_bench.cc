#include <string>
#include <vector>

#include "kernels/cuda/bench/model.h"
#include "kernels/cuda/bench/timing.h"
#include "kernels/cuda/merge.h"
#include "kernels/cuda/testing/values.h"

namespace valora::kernels::cuda {
namespace {

constexpr Dtype kDtype = Dtype::kBf16;

// Merges all linears of `layers` layers in one launch, once per tile.
void bench_layers(const ModelSizes& m, int layers, int rank, const Figures& figures) {
  const int q = m.heads * m.dim, kv = m.kv_heads * m.dim;
  const std::vector<std::pair<int, int>> linears = {
      {q, m.hidden},       {kv, m.hidden},      {kv, m.hidden},     {m.hidden, q},
      {m.inter, m.hidden}, {m.inter, m.hidden}, {m.hidden, m.inter}};
  int64_t weights = 0, factors = 0;
  for (const auto& [out, in] : linears) {
    weights += int64_t{out} * in;
    factors += int64_t{rank} * (out + in);
  }
  const DeviceMemory source(weights * layers * 2), merged(weights * layers * 2),
      adapter(factors * layers * 2);
  require(cudaMemset(source.data(), 0x3c, source.size()), "cudaMemset");
  require(cudaMemset(adapter.data(), 0x3c, adapter.size()), "cudaMemset");
  std::vector<MergeItem> items;
  int64_t weight = 0, factor = 0;
  for (int layer = 0; layer < layers; ++layer)
    for (const auto& [out, in] : linears) {
      const std::byte* a = adapter.data() + 2 * factor;
      const std::byte* b = a + 2 * int64_t{rank} * in;
      items.push_back({source.data() + 2 * weight,
                       merged.data() + 2 * weight,
                       {{a, nullptr, 0}, {b, nullptr, 0}, rank, in, out, 1},
                       1});
      weight += int64_t{out} * in;
      factor += int64_t{rank} * (out + in);
    }
  for (const CudaTile tile :
       {CudaTile{64, 4, 1, 1}, CudaTile{128, 8, 2, 1}, CudaTile{128, 8, 3, 1}}) {
    const MergePlan plan = plan_merge(kDtype, items.data(), items.size(), tile);
    const DeviceTable<DeviceMerge> table(plan.merges);
    const double seconds = seconds_per_launch(
        [&](int, Stream stream) { return merge(kDtype, plan, table.data(), stream); }, 1);
    print_result(std::string("merge ") + m.name + " layers " + std::to_string(layers) + " rank " +
                     std::to_string(rank) + " tile " + std::to_string(tile.width) + "/" +
                     std::to_string(tile.stages),
                 seconds, 2.0 * (2 * weights + factors) * layers, 0, figures);
  }
}

}  // namespace

void bench_merge(const Figures& figures) {
  for (const ModelSizes& m : kModels)
    for (const int rank : {16, 64, 256}) bench_layers(m, m.hidden > 1000 ? 4 : 24, rank, figures);
}

}  // namespace valora::kernels::cuda
