// Merges what FlashInfer's kernels computed of parts of the keys of prompts.
#include <algorithm>

#include "kernels/cuda/attention/flashinfer.h"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/mma.cuh"
#include "kernels/cuda/device/reduce.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kMostThreads = 256;

// One thread block per token; a thread merges 4 values of a head at a time. A part's mean counts as
// its sum of weights, whose logarithm is relative to nothing but 0.
template <typename T>
__global__ void __launch_bounds__(kMostThreads)
    merge_prompt_kernel(const float* means, const float* logarithms, const PromptRow* rows, T* out,
                        int heads, int dim) {
  wait_for_earlier_launch();
  const int64_t token = blockIdx.x;
  const PromptRow row = rows[token];
  for (int i = threadIdx.x; row.parts > 0 && i < heads * dim / 4; i += blockDim.x) {
    const int head = i * 4 / dim;
    const float* of_head = logarithms + static_cast<int64_t>(row.first) * heads + head;
    float largest = -INFINITY;
    for (int part = 0; part < row.parts; ++part)
      largest = fmaxf(largest, of_head[static_cast<int64_t>(part) * heads]);
    float weights = 0, values[4] = {};
    for (int part = 0; part < row.parts; ++part) {
      const float weight = exp2f(of_head[static_cast<int64_t>(part) * heads] - largest);
      const float4 mean = *reinterpret_cast<const float4*>(
          means + (static_cast<int64_t>(row.first) + part) * heads * dim + i * 4);
      weights += weight;
      values[0] += weight * mean.x, values[1] += weight * mean.y;
      values[2] += weight * mean.z, values[3] += weight * mean.w;
    }
    *reinterpret_cast<uint2*>(out + token * heads * dim + i * 4) = {
        pack<T>(values[0] / weights, values[1] / weights),
        pack<T>(values[2] / weights, values[3] / weights)};
  }
}

}  // namespace

Status merge_prompt_parts(const PromptCall& call, int32_t tokens, void* out) {
  const int threads = std::min(ceil_div(call.heads * call.dim / 4, kWarpSize) * kWarpSize,
                               kMostThreads);
  return with_half_type(call.dtype, [&](auto type) {
    using T = decltype(type);
    return launch(merge_prompt_kernel<T>, static_cast<unsigned>(tokens), threads, 0, call.stream,
                  static_cast<const float*>(call.out), call.logarithms,
                  reinterpret_cast<const PromptRow*>(call.plan.rows), static_cast<T*>(out),
                  call.heads, call.dim);
  });
}

}  // namespace valora::kernels::cuda
