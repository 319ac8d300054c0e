// Reductions in a fixed order, so that results do not depend on timing.
#pragma once

namespace valora::kernels::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr int kWarpSize = 32;

__device__ inline float warp_sum(float v) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2)
    v += __shfl_xor_sync(kAllLanes, v, offset);
  return v;
}

__device__ inline float warp_max(float v) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2)
    v = fmaxf(v, __shfl_xor_sync(kAllLanes, v, offset));
  return v;
}

// The sum over all threads of a block of whole warps, returned to every thread. partial: shared
// memory, [32].
__device__ inline float block_sum(float v, float* partial) {
  v = warp_sum(v);
  const int warps = static_cast<int>(blockDim.x) / kWarpSize;
  if (threadIdx.x % kWarpSize == 0) partial[threadIdx.x / kWarpSize] = v;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < warps; ++i) sum += partial[i];
  return sum;
}

}  // namespace valora::kernels::cuda
