// Fragments of products as runs of 8 columns, which are 16 bytes of weights.
#pragma once

#include "kernels/cuda/device/reduce.cuh"

namespace valora::kernels::cuda {

// In each group of four lanes, lane q has columns 2q and 2q+1 of four fragments and receives all 8
// columns of fragment q. row: 0 or 1, which half of the fragments.
__device__ inline void transpose_in_fours(const float (*fragments)[4], int row,
                                          float (&columns)[8]) {
  const int q = threadIdx.x % 4;
  float2 own[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) own[j] = {fragments[j][2 * row], fragments[j][2 * row + 1]};
  // Passes values, not references: indexing at run time would move `own` to local memory.
  const auto exchange = [](float x, float y, int mask) {
    return float2{__shfl_xor_sync(kAllLanes, x, mask), __shfl_xor_sync(kAllLanes, y, mask)};
  };
  // Fragments whose bit 1 differs from q's go to lane q ^ 2, then those whose bit 0 differs to lane
  // q ^ 1.
  const bool upper = (q & 2) != 0, odd = (q & 1) != 0;
  float2 half[2][2];  // [fragment bit 0][whose columns: bit 1 of the lane]
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const float2 kept = upper ? own[2 + j] : own[j];
    const float2 sent = upper ? own[j] : own[2 + j];
    const float2 got = exchange(sent.x, sent.y, 2);
    half[j][0] = upper ? got : kept;
    half[j][1] = upper ? kept : got;
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float2 kept = odd ? half[1][h] : half[0][h];
    const float2 sent = odd ? half[0][h] : half[1][h];
    const float2 got = exchange(sent.x, sent.y, 1);
    const float2 first = odd ? got : kept, second = odd ? kept : got;
    columns[4 * h] = first.x, columns[4 * h + 1] = first.y;
    columns[4 * h + 2] = second.x, columns[4 * h + 3] = second.y;
  }
}

}  // namespace valora::kernels::cuda
