// Shared by prefill and decode: tiles of rows in shared memory, scores, online softmax
// (FlashAttention-2 §3.1) and weighted sums, for 16 query rows of one warp. device/mma.cuh
// describes the layouts of fragments.
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device/mma.cuh"
#include "kernels/cuda/device/reduce.cuh"

namespace valora::kernels::cuda {

// Rows of a tile are padded by 16 bytes, so that the 8 rows of a matrix fall into different banks.
template <int dim>
inline constexpr int kTileStride = dim + 8;

template <typename T>
struct FlashArguments {
  const T* layer;
  const uint8_t* codes;  // the layer, if the cache is in 8 bits
  int64_t block_stride;
  const T* q;
  int64_t q_stride;
  T* out;
  const DeviceSpan* spans;
  const int32_t* block_tables;
  const int32_t* ends;  // per token, of the positions it attends to; null: its own is the last
  int heads, kv_heads, dim;
  int window;   // 0: none
  float scale;  // on scores, times log2(e)
  bool ints;    // the codes are integers
};

// The first key that is read for queries at `position` and after it: those before it, in whole KV
// blocks, are outside the window.
__device__ inline int first_key_of(int position, int window) {
  constexpr int kBlock = static_cast<int>(kBlockTokens);
  return window > 0 && position >= window ? (position - window + 1) / kBlock * kBlock : 0;
}

// The last key that a query attends to. kBounded: as the table of ends says, if there is one.
template <bool kBounded, typename T>
__device__ int last_key_of(const FlashArguments<T>& a, int64_t token, int position) {
  if constexpr (kBounded)
    if (a.ends != nullptr) return a.ends[token] - 1;
  return position;
}

// Address for loading four matrices: rows [row, row + 16), columns [column, column + 16). In this
// order they form an A fragment or, transposed, two B fragments with k along the rows.
__device__ inline uint32_t matrices_at(uint32_t tile, int stride, int row, int column) {
  const int lane = threadIdx.x % kWarpSize;
  return tile + ((row + lane % 16) * stride + column + lane / 16 * 8) * 2;
}
// The same in the order of two B fragments with k along the columns: of rows [row, row + 8) and of
// the next 8.
__device__ inline uint32_t matrices_by_rows(uint32_t tile, int stride, int row, int column) {
  const int lane = threadIdx.x % kWarpSize;
  return tile + ((row + lane % 8 + lane / 16 * 8) * stride + column + lane / 8 % 2 * 8) * 2;
}

// Copies query rows [0, count) of a tile to shared memory and fills the others with zeros. Row r is
// query r / group and head r % group of the KV head's group. token: that of the first query.
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

// The state of 16 rows. Each lane holds rows lane / 4 and lane / 4 + 8.
template <int kDim>
struct RowState {
  float sums[kDim / 8][4] = {};  // fragments C of [16, dim]
  float maxima[2] = {-INFINITY, -INFINITY};
  float weights[2] = {};  // this lane's share of the sums of weights
};

// scores += Q Kᵀ for one step of 16 columns of Q. keys: tile rows starting at `row`.
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

// Masks the scores of keys beyond limits[i], the last one that this lane's row i attends to.
template <int kKeys>
__device__ void mask_scores(float (&scores)[kKeys / 8][4], int first_key, const int (&limits)[2]) {
  const int column = first_key + threadIdx.x % 4 * 2;
#pragma unroll
  for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (column + j * 8 + i % 2 > limits[i / 2]) scores[j][i] = -INFINITY;
}

// Masks the scores of keys before begins[i], the start of the window of this lane's row i.
template <int kKeys>
__device__ void mask_before(float (&scores)[kKeys / 8][4], int first_key, const int (&begins)[2]) {
  const int column = first_key + threadIdx.x % 4 * 2;
#pragma unroll
  for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (column + j * 8 + i % 2 < begins[i / 2]) scores[j][i] = -INFINITY;
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
    // If all keys so far are masked, all weights are 0.
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

// The A fragment of the weights of keys [16 · step, 16 · step + 16).
template <typename T, int kKeys>
__device__ void weight_fragment(uint32_t (&p)[4], const float (&weights)[kKeys / 8][4], int step) {
  p[0] = pack<T>(weights[2 * step][0], weights[2 * step][1]);
  p[1] = pack<T>(weights[2 * step][2], weights[2 * step][3]);
  p[2] = pack<T>(weights[2 * step + 1][0], weights[2 * step + 1][1]);
  p[3] = pack<T>(weights[2 * step + 1][2], weights[2 * step + 1][3]);
}

// A row's sum of weights, added over the 4 lanes that share the row.
__device__ inline float whole_weight(float share) {
  share += __shfl_xor_sync(kAllLanes, share, 1);
  return share + __shfl_xor_sync(kAllLanes, share, 2);
}

}  // namespace valora::kernels::cuda
