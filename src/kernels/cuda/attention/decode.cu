// Decode with split keys (Flash-Decoding). Each thread block handles a part of the keys of one span
// and one KV head, with all query rows of the group in one tile of 16. Each warp processes every
// fourth KV block through its own ring, so warps synchronise only at the end. The last block to
// finish for a span and KV head merges the parts, in the order of the keys.
#include <algorithm>

#include "kernels/cuda/attention/flash.cuh"
#include "kernels/cuda/attention/flash_arguments.cuh"
#include "kernels/cuda/attention/kv_bytes.cuh"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/attention/merge_parts.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/shared.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kKeys = static_cast<int>(kBlockTokens);  // per step of a warp

template <int dimension, int stages>
struct Ring {
  static constexpr int kDim = dimension, kStages = stages;
  static constexpr int kStride = kTileStride<kDim>;
  static constexpr int kSideBytes = kKeys * kStride * 2;  // K or V
  static constexpr int kWarpBytes = kStages * 2 * kSideBytes;
  static constexpr int kQueryBytes = kDecodeRows * kStride * 2;
  static constexpr int kBytes = kQueryBytes + kWarps * kWarpBytes;
  // How many parts the merging block has memory for.
  static constexpr int kMostParts = kWarps * kWarpBytes / (kDecodeRows * 8);
  // After the last step, the ring is reused for the sums of all warps.
  static constexpr int kSumStride = kDim + 8;
  static_assert(kWarps * kDecodeRows * kSumStride * 4 <= kWarps * kWarpBytes);
};

// Copies K and V of one KV block, with zeros beyond `end`.
template <typename T, typename Ring>
__device__ void copy_block(uint32_t stage, const FlashArguments<T>& a, int32_t block, int kv_head,
                           int first, int end) {
  constexpr int kChunks = Ring::kDim / 8;
  const int lane = threadIdx.x % kWarpSize;
  const int64_t row_elements = static_cast<int64_t>(a.kv_heads) * a.dim;
  const T* keys = a.layer + block * a.block_stride + static_cast<int64_t>(kv_head) * a.dim;
#pragma unroll
  for (int i = 0; i < kKeys * kChunks / kWarpSize; ++i) {
    const int index = lane + i * kWarpSize, row = index / kChunks, column = index % kChunks * 8;
    const bool valid = first + row < end && column < a.dim;
    const T* source = valid ? keys + row * row_elements + column : a.layer;
    const uint32_t at = stage + (row * Ring::kStride + column) * 2;
    copy_async(at, source, valid);
    copy_async(at + Ring::kSideBytes, valid ? source + kKeys * row_elements : source, valid);
  }
}

// The same for codes, decoded on the way; no copies are in flight afterwards.
template <typename T, typename Ring>
__device__ void decode_block(uint32_t stage, const FlashArguments<T>& a, int32_t block, int kv_head,
                             int first, int end) {
  constexpr int kChunks = Ring::kDim / 8, kTogether = kChunks % 8 == 0 ? 4 : 3;
  static_assert(kKeys * kChunks / kWarpSize % kTogether == 0);
  const int lane = threadIdx.x % kWarpSize;
  const uint8_t* const layer = a.codes + block * a.block_stride;
#pragma unroll
  for (int i = 0; i < kKeys * kChunks / kWarpSize; i += kTogether) {
    CodesOfToken codes[kTogether];
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const int index = lane + (i + j) * kWarpSize, row = index / kChunks;
      const int column = index % kChunks * 8;
      codes[j] = load_codes(layer, row, kv_head, a.kv_heads, a.dim, column,
                            first + row < end && column < a.dim);
    }
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const int index = lane + (i + j) * kWarpSize, row = index / kChunks;
      const uint32_t at = stage + (row * Ring::kStride + index % kChunks * 8) * 2;
      put_numbers<T>(at, Ring::kSideBytes, codes[j], a.ints);
    }
  }
}

// Which keys this lane's two rows attend to: from `begins` to `limits`.
struct RowBounds {
  int limits[2], begins[2];
  int last_begin;  // of any row of the span; no key from it on is before a window
};

template <bool kBounded, typename T>
__device__ RowBounds bounds_of(const FlashArguments<T>& a, const DeviceSpan& span) {
  const int group = a.heads / a.kv_heads, lane = threadIdx.x % kWarpSize;
  RowBounds bounds;
  bounds.last_begin = a.window > 0 ? span.context + span.queries - a.window : 0;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = min((lane / 4 + r * 8) / group, span.queries - 1);
    const int position = span.context + query;
    bounds.limits[r] = last_key_of<kBounded>(a, span.begin + query, position);
    bounds.begins[r] = position - a.window + 1;
  }
  return bounds;
}

template <typename T, typename Ring, bool kBounded>
__device__ void attend_block(RowState<Ring::kDim>& state, uint32_t queries, uint32_t stage,
                             int first_key, const RowBounds& bounds, float scale) {
  constexpr int kDim = Ring::kDim;
  float scores[kKeys / 8][4] = {};
#pragma unroll
  for (int column = 0; column < kDim; column += 16) {
    uint32_t q[4];
    load_matrices(q, matrices_at(queries, Ring::kStride, 0, column));
    add_scores<T, kKeys>(scores, q, stage, Ring::kStride, 0, column);
  }
  mask_scores<kKeys>(scores, first_key, bounds.limits);
  if constexpr (kBounded)
    if (first_key < bounds.last_begin) mask_before<kKeys>(scores, first_key, bounds.begins);
  to_weights<kKeys>(scores, state, scale);
  uint32_t p[4];
  weight_fragment<T, kKeys>(p, scores, 0);
#pragma unroll
  for (int j = 0; j < kDim / 16; ++j) {
    uint32_t v[4];
    load_transposed(v, matrices_at(stage + Ring::kSideBytes, Ring::kStride, 0, j * 16));
    mma<T>(state.sums[2 * j], p[0], p[1], p[2], p[3], v[0], v[1]);
    mma<T>(state.sums[2 * j + 1], p[0], p[1], p[2], p[3], v[2], v[3]);
  }
}

// Attends to one warp's KV blocks within [begin, end): every fourth, starting with block `warp`.
template <typename T, typename Ring, bool kBounded>
__device__ void attend_blocks(RowState<Ring::kDim>& state, const FlashArguments<T>& a,
                              const int32_t* blocks, int kv_head, int begin, int end,
                              uint32_t queries, uint32_t ring, const RowBounds& bounds) {
  constexpr int kStages = Ring::kStages;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int count = (end - begin + kKeys - 1) / kKeys;
  const int steps = count > warp ? (count - warp + kWarps - 1) / kWarps : 0;
  const int32_t* mine = blocks + begin / kKeys + warp;
  int32_t next_blocks = 0;  // for 32 steps, one per lane
  const auto copy = [&](int step) {
    if (step < steps) {
      if (step % kWarpSize == 0 && step + lane < steps) next_blocks = mine[(step + lane) * kWarps];
      const int32_t block = __shfl_sync(kAllLanes, next_blocks, step % kWarpSize);
      copy_block<T, Ring>(ring + step % kStages * 2 * Ring::kSideBytes, a, block, kv_head,
                          begin + (warp + step * kWarps) * kKeys, end);
    }
    commit_copies();
  };
#pragma unroll
  for (int step = 0; step < kStages - 1; ++step) copy(step);
  // The queries were committed first, so they have arrived once at most kStages - 1 groups are in
  // flight.
  wait_copies<kStages - 1>();
  __syncthreads();
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    wait_copies<kStages - 2>();
    __syncwarp();
    copy(step + kStages - 1);
    attend_block<T, Ring, kBounded>(state, queries, ring + step % kStages * 2 * Ring::kSideBytes,
                                    begin + (warp + step * kWarps) * kKeys, bounds, a.scale);
  }
}

// The same for codes. One stage is enough, because a warp waits for its loads to decode them.
template <typename T, typename Ring, bool kBounded>
__device__ void attend_codes(RowState<Ring::kDim>& state, const FlashArguments<T>& a,
                             const int32_t* blocks, int kv_head, int begin, int end,
                             uint32_t queries, uint32_t stage, const RowBounds& bounds) {
  wait_copies<0>();
  __syncthreads();  // the queries have arrived
  const int warp = threadIdx.x / kWarpSize;
#pragma unroll 1
  for (int first = begin + warp * kKeys; first < end; first += kWarps * kKeys) {
    decode_block<T, Ring>(stage, a, blocks[first / kKeys], kv_head, first, end);
    __syncwarp();
    attend_block<T, Ring, kBounded>(state, queries, stage, first, bounds, a.scale);
    __syncwarp();  // all lanes have finished reading the stage
  }
}

template <int kDim, int kSumStride>
__device__ void write_state(const RowState<kDim>& state, float* sums, float* maxima,
                            float* weights) {
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = warp * kDecodeRows + lane / 4 + r * 8;
    const float weight = whole_weight(state.weights[r]);
    if (lane % 4 == 0) maxima[row] = state.maxima[r], weights[row] = weight;
#pragma unroll
    for (int j = 0; j < kDim / 8; ++j)
      *reinterpret_cast<float2*>(sums + row * kSumStride + j * 8 + lane % 4 * 2) = {
          state.sums[j][2 * r], state.sums[j][2 * r + 1]};
  }
}

template <typename T, typename Ring, bool kCodes, bool kBounded>
__global__ void __launch_bounds__(kThreads) decode_kernel(FlashArguments<T> a, Parts parts) {
  wait_for_earlier_launch();
  VALORA_DYNAMIC_SHARED(memory);
  VALORA_SHARED(float, maxima, [kWarps * kDecodeRows]);
  VALORA_SHARED(float, weights, [kWarps * kDecodeRows]);
  const DeviceSpan span = a.spans[blockIdx.z];
  const int kv_head = blockIdx.y, length = span.context + span.queries;
  const int first = kBounded ? first_key_of(span.context, a.window) : 0;
  const int begin = first + blockIdx.x * parts.split_keys;
  const int end = min(begin + parts.split_keys, length);
  if (span.queries == 0 || begin >= length) return;
  const int group = a.heads / a.kv_heads, rows = span.queries * group;
  const int warp = threadIdx.x / kWarpSize;
  const uint32_t queries = shared_address(memory);
  copy_queries<T, Ring::kDim>(queries, a, span.begin, kv_head, kDecodeRows, rows);
  commit_copies();
  const RowBounds bounds = bounds_of<kBounded>(a, span);
  RowState<Ring::kDim> state;
  const int32_t* const blocks = a.block_tables + span.first_block;
  const uint32_t ring = queries + Ring::kQueryBytes + warp * Ring::kWarpBytes;
  if constexpr (kCodes)
    attend_codes<T, Ring, kBounded>(state, a, blocks, kv_head, begin, end, queries, ring, bounds);
  else
    attend_blocks<T, Ring, kBounded>(state, a, blocks, kv_head, begin, end, queries, ring, bounds);

  float* sums = reinterpret_cast<float*>(memory + Ring::kQueryBytes);
  wait_copies<0>();
  __syncthreads();
  write_state<Ring::kDim, Ring::kSumStride>(state, sums, maxima, weights);
  __syncthreads();
  const int count = (length - first + parts.split_keys - 1) / parts.split_keys;  // of this span
  const bool whole = parts.splits == 1 || (parts.counters != nullptr && count == 1);
  for (int i = threadIdx.x; i < rows * a.dim; i += kThreads) {
    const int row = i / a.dim, column = i - row * a.dim;
    float maximum = -INFINITY, weight = 0, value = 0;
    for (int w = 0; w < kWarps; ++w) maximum = fmaxf(maximum, maxima[w * kDecodeRows + row]);
    const float base = maximum == -INFINITY ? 0.0f : maximum;
    for (int w = 0; w < kWarps; ++w) {
      const float factor = exp2f(maxima[w * kDecodeRows + row] - base);
      weight += factor * weights[w * kDecodeRows + row];
      value += factor * sums[(w * kDecodeRows + row) * Ring::kSumStride + column];
    }
    if (whole) {
      const int64_t token = span.begin + row / group;
      const int head = kv_head * group + row % group;
      a.out[(token * a.heads + head) * a.dim + column] = from_float<T>(value / weight);
    } else {
      const int64_t part =
          ((static_cast<int64_t>(blockIdx.z) * a.kv_heads + kv_head) * parts.rows + row) *
              parts.splits +
          blockIdx.x;
      parts.sums[part * a.dim + column] = value;
      if (column == 0) parts.states[part] = {maximum, weight};
    }
  }
  if (whole || parts.counters == nullptr) return;
  if (is_last(parts.counters + blockIdx.z * a.kv_heads + kv_head, count, weights))
    merge_parts(a, parts, span, kv_head, count, reinterpret_cast<float2*>(sums));
}

template <typename T, typename Sizes, bool kCodes = false>
Status decode_with(const AttentionCall& call) {
  const AttentionSizes& sizes = call.sizes;
  const int kv_heads = call.cache.kv_heads, dim = call.cache.dim, splits = sizes.splits();
  const int64_t count =
      static_cast<int64_t>(sizes.decode_spans) * kv_heads * sizes.decode_rows * splits;
  auto* sums = static_cast<float*>(call.workspace);
  unsigned* counters = splits <= Sizes::kMostParts ? call.tables.counters : nullptr;
  const Parts parts{sums,     splits == 1 ? nullptr : reinterpret_cast<float2*>(sums + count * dim),
                    counters, sizes.decode_rows,
                    splits,   sizes.split_keys};
  const FlashArguments<T> arguments = flash_arguments<T>(call);
  const Status status = with_bounds(call, [&](auto bounded) {
    return launch(decode_kernel<T, Sizes, kCodes, bounded.value>,
                  dim3(splits, kv_heads, sizes.decode_spans), kThreads, Sizes::kBytes, call.stream,
                  arguments, parts);
  });
  if (status != cudaSuccess || splits == 1 || counters != nullptr) return status;
  const int threads = std::min(ceil_div(dim, kWarpSize) * kWarpSize, kMergeThreads);
  return launch(merge_parts_kernel<T>, dim3(kv_heads * sizes.decode_rows, sizes.decode_spans),
                threads, 0, call.stream, arguments, parts);
}

template <typename T, int kDim>
Status decode_spans(const AttentionCall& call) {
  if (in_bytes(call.cache.format)) return decode_with<T, Ring<kDim, 1>, true>(call);
  using Usual = Ring<kDim, kDim <= 128 ? 3 : 2>;
  constexpr int kStaticBytes = 2 * kWarps * kDecodeRows * 4;
  if constexpr (kDim == 128)
    if (Usual::kBytes + kStaticBytes > call.sizes.shared_bytes)
      return decode_with<T, Ring<kDim, 2>>(call);
  return decode_with<T, Usual>(call);
}

}  // namespace

Status decode_attention(const AttentionCall& call) {
  if (call.sizes.decode_spans == 0) return cudaSuccess;
  return with_half_type(call.cache.dtype, [&](auto type) {
    using T = decltype(type);
    return with_dim(call.cache.dim, [&](auto dim) { return decode_spans<T, dim.value>(call); });
  });
}

}  // namespace valora::kernels::cuda
