// The parts that prefill and decode share: tiles of rows in shared memory, scores, online softmax
// (FlashAttention-2 §3.1) and weighted sums, for 16 query rows of one warp. Layouts of fragments
// are in device/mma.cuh.
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device/mma.cuh"
#include "kernels/cuda/device/reduce.cuh"

namespace valora::kernels::cuda {

// Rows of a tile are 16 bytes longer than dim, so that the 8 rows of a matrix lie in different
// banks.
template <int dim>
inline constexpr int kTileStride = dim + 8;

template <typename T>
struct FlashArguments {
  const T* layer;
  int64_t block_stride;
  const T* q;
  int64_t q_stride;
  T* out;
  const DeviceSpan* spans;
  const int32_t* block_tables;
  int heads, kv_heads, dim;
  float scale;  // of scores, times log2(e)
};

// Address of four matrices: rows [row, row + 16), columns [column, column + 16). In this order they
// are the words of a fragment A, or, transposed, of two fragments B with k along the rows.
__device__ inline uint32_t matrices_at(uint32_t tile, int stride, int row, int column) {
  const int lane = threadIdx.x % kWarpSize;
  return tile + ((row + lane % 16) * stride + column + lane / 16 * 8) * 2;
}
// The same in the order of two fragments B with k along the columns: of rows [row, row + 8) and of
// the next 8.
__device__ inline uint32_t matrices_by_rows(uint32_t tile, int stride, int row, int column) {
  const int lane = threadIdx.x % kWarpSize;
  return tile + ((row + lane % 8 + lane / 16 * 8) * stride + column + lane / 8 % 2 * 8) * 2;
}

// Copies query rows [0, count) of a tile to shared memory, zeros to the others. Row r is query
// r / group, head r % group of the kv head's group. token: of the first query.
template <typename T, int kDim>
__device__ void copy_queries(uint32_t tile, const FlashArguments<T>& a, int64_t token, int kv_head,
                             int rows, int count) {
  constexpr int kChunks = kDim / 8;
  const int group = a.heads / a.kv_heads;
  for (int i = threadIdx.x; i < rows * kChunks; i += blockDim.x) {
    const int row = i / kChunks, column = i % kChunks * 8;
    const bool valid = row < count && column < a.dim;
    const int64_t at = (token + row / group) * a.q_stride +
                       static_cast<int64_t>(kv_head * group + row % group) * a.dim + column;
    copy_async(tile + (row * kTileStride<kDim> + column) * 2, a.q + (valid ? at : 0), valid);
  }
}

// The state of 16 rows: rows lane / 4 and lane / 4 + 8 in each lane.
template <int kDim>
struct RowState {
  float sums[kDim / 8][4] = {};  // fragments C of [16, dim]
  float maxima[2] = {-INFINITY, -INFINITY};
  float weights[2] = {};  // this lane's share of the sum of weights
};

// scores += Q Kᵀ for one step of 16 columns of Q. keys: rows of the tile from `row` on.
template <typename T, int kKeys>
__device__ void add_scores(float (&scores)[kKeys / 8][4], const uint32_t (&q)[4], uint32_t keys,
                           int stride, int row, int column) {
#pragma unroll
  for (int j = 0; j < kKeys / 16; ++j) {
    uint32_t k[4];
    load_matrices(k, matrices_by_rows(keys, stride, row + j * 16, column));
    mma<T>(scores[2 * j], q[0], q[1], q[2], q[3], k[0], k[1]);
    mma<T>(scores[2 * j + 1], q[0], q[1], q[2], q[3], k[2], k[3]);
  }
}

// Masks the scores of keys beyond limits[i], the position of row i of this lane.
template <int kKeys>
__device__ void mask_scores(float (&scores)[kKeys / 8][4], int first_key, const int (&limits)[2]) {
  const int column = first_key + threadIdx.x % 4 * 2;
#pragma unroll
  for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (column + j * 8 + i % 2 > limits[i / 2]) scores[j][i] = -INFINITY;
}

// Replaces scores by weights, exp2(scale · score - maximum), and rescales the state to the new
// maxima.
template <int kKeys, int kDim>
__device__ void to_weights(float (&scores)[kKeys / 8][4], RowState<kDim>& state, float scale) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float maximum = state.maxima[r];
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
      maximum = fmaxf(maximum, fmaxf(scores[j][2 * r], scores[j][2 * r + 1]) * scale);
    maximum = fmaxf(maximum, __shfl_xor_sync(kAllLanes, maximum, 1));
    maximum = fmaxf(maximum, __shfl_xor_sync(kAllLanes, maximum, 2));
    // If every key so far was masked, all weights are 0.
    const float base = maximum == -INFINITY ? 0.0f : maximum;
    const float shrink = fast_exp2(state.maxima[r] - base);
    state.maxima[r] = maximum;
    float sum = 0;
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        scores[j][i] = fast_exp2(fmaf(scores[j][i], scale, -base));
        sum += scores[j][i];
      }
    state.weights[r] = fmaf(state.weights[r], shrink, sum);
#pragma unroll
    for (int j = 0; j < kDim / 8; ++j) {
      state.sums[j][2 * r] *= shrink;
      state.sums[j][2 * r + 1] *= shrink;
    }
  }
}

// The fragment A of weights of keys [16 · step, 16 · step + 16).
template <typename T, int kKeys>
__device__ void weight_fragment(uint32_t (&p)[4], const float (&weights)[kKeys / 8][4], int step) {
  p[0] = pack<T>(weights[2 * step][0], weights[2 * step][1]);
  p[1] = pack<T>(weights[2 * step][2], weights[2 * step][3]);
  p[2] = pack<T>(weights[2 * step + 1][0], weights[2 * step + 1][1]);
  p[3] = pack<T>(weights[2 * step + 1][2], weights[2 * step + 1][3]);
}

// The sum of weights of a row, over the 4 lanes that share it.
__device__ inline float whole_weight(float share) {
  share += __shfl_xor_sync(kAllLanes, share, 1);
  return share + __shfl_xor_sync(kAllLanes, share, 2);
}

}  // namespace valora::kernels::cuda
