#include "kernels/cuda/merge/variants.h"

#include "kernels/cuda/device/factor.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/merge/find_tile.cuh"
#include "kernels/cuda/merge/weights.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRowsAtOnce = 8;  // outputs that share a load of A
static_assert(kMergeRows % kRowsAtOnce == 0);

// Each thread handles one input at a time, for several outputs.
template <typename T>
__global__ void __launch_bounds__(kThreads) merge_kernel(const DeviceMerge* merges, int count) {
  wait_for_earlier_launch();
  const MergeTile tile = find_tile(merges, count, kMergeRows);
  const MergeItem item = *tile.item;
  const DeviceLoraModule& m = item.module;
  const int end_out = min(tile.first_out + kMergeRows, m.out);
  for (int in = tile.first_in + threadIdx.x; in < tile.end_in; in += kThreads)
    for (int first = tile.first_out; first < end_out; first += kRowsAtOnce) {
      float sums[kRowsAtOnce] = {};
      for (int k = 0; k < m.rank; ++k) {
        const float a = to_float(factor_row<T>(m.a, k, m.in)[in]);
#pragma unroll
        for (int i = 0; i < kRowsAtOnce; ++i)
          if (first + i < end_out)
            sums[i] += to_float(factor_row<T>(m.b, first + i, m.rank)[k]) * a;
      }
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) {
        if (first + i >= end_out) continue;
        const int64_t at = static_cast<int64_t>(first + i) * m.in + in;
        const float weight = item.weight == nullptr
                                 ? decode_one(item.integers, first + i, in)
                                 : to_float(static_cast<const T*>(item.weight)[at]);
        static_cast<T*>(item.merged)[at] = from_float<T>(fmaf(item.coefficient, sums[i], weight));
      }
    }
}

}  // namespace

Status merge_plain(Dtype dtype, const MergePlan& plan, const DeviceMerge* merges, Stream stream) {
  return with_type(dtype, [&](auto type) {
    return launch(merge_kernel<decltype(type)>, static_cast<unsigned>(plan.tiles), kThreads, 0,
                  stream, merges, static_cast<int>(plan.merges.size()));
  });
}

}  // namespace valora::kernels::cuda
