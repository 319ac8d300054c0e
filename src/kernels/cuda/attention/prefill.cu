// Prefill: each thread block computes a tile of query rows of one KV head. The heads of its group
// are rows of the tile, so that keys and values are read once per group.
#include "kernels/cuda/attention/flash.cuh"
#include "kernels/cuda/attention/flash_arguments.cuh"
#include "kernels/cuda/attention/kv_bytes.cuh"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/shared.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;

// Tile sizes. kKeys: keys per stage of the ring. kBands: bands of 16 rows per warp. kStepKeys: keys
// per softmax update.
template <int dimension, int keys>
struct Tile {
  static constexpr int kDim = dimension, kKeys = keys;
  static constexpr int kRows = prefill_rows(kDim);
  static constexpr int kBands = kRows / (16 * kWarps);
  static constexpr int kStepKeys = 32;
  static constexpr int kStride = kTileStride<kDim>;
  static constexpr int kSideBytes = kKeys * kStride * 2;  // K or V
  static constexpr int kQueryBytes = kRows * kStride * 2;
  static constexpr int kBytes = kQueryBytes + 2 * 2 * kSideBytes;
};

// Copies K and V of keys [first, first + kKeys) to shared memory, with zeros beyond `end`: their
// weights are 0, but the memory might contain NaN.
template <typename T, typename Tile>
__device__ void copy_keys(uint32_t tile, const FlashArguments<T>& a, const int32_t* blocks,
                          int kv_head, int first, int end) {
  constexpr int kChunks = Tile::kDim / 8;
  static_assert(Tile::kKeys * kChunks % kThreads == 0);
  const int64_t row_elements = static_cast<int64_t>(a.kv_heads) * a.dim;
#pragma unroll
  for (int i = 0; i < Tile::kKeys * kChunks / kThreads; ++i) {
    const int index = threadIdx.x + i * kThreads;
    const int row = index / kChunks, column = index % kChunks * 8, key = first + row;
    const bool valid = key < end && column < a.dim;
    const T* source = a.layer;
    if (valid)
      source += blocks[key / static_cast<int>(kBlockTokens)] * a.block_stride +
                key % kBlockTokens * row_elements + static_cast<int64_t>(kv_head) * a.dim + column;
    const uint32_t at = tile + (row * Tile::kStride + column) * 2;
    copy_async(at, source, valid);
    copy_async(at + Tile::kSideBytes, valid ? source + kBlockTokens * row_elements : source, valid);
  }
}

// The same for codes, decoded on the way.
template <typename T, typename Tile>
__device__ void decode_keys(uint32_t tile, const FlashArguments<T>& a, const int32_t* blocks,
                            int kv_head, int first, int end) {
  constexpr int kChunks = Tile::kDim / 8, kTogether = 2;
  static_assert(Tile::kKeys * kChunks / kThreads % kTogether == 0);
#pragma unroll
  for (int i = 0; i < Tile::kKeys * kChunks / kThreads; i += kTogether) {
    CodesOfToken codes[kTogether];
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const int index = threadIdx.x + (i + j) * kThreads, column = index % kChunks * 8;
      const int key = first + index / kChunks;
      const bool valid = key < end && column < a.dim;
      const int32_t block = valid ? blocks[key / static_cast<int>(kBlockTokens)] : 0;
      codes[j] = load_codes(a.codes + block * a.block_stride, key % static_cast<int>(kBlockTokens),
                            kv_head, a.kv_heads, a.dim, column, valid);
    }
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const int index = threadIdx.x + (i + j) * kThreads;
      const uint32_t at = tile + (index / kChunks * Tile::kStride + index % kChunks * 8) * 2;
      put_numbers<T>(at, Tile::kSideBytes, codes[j], a.ints);
    }
  }
}

// The queries of a tile.
struct TileQueries {
  int64_t token;       // of the first
  int first_position;  // of the first
  int count, group;

  // Rows beyond the last query compute values that are never written.
  __device__ int of_row(int row) const { return min(row / group, count - 1); }
  template <bool kBounded, typename T>
  __device__ int last_key(const FlashArguments<T>& a, int query) const {
    return last_key_of<kBounded>(a, token + query, first_position + query);
  }
};

// Masks the scores of 16 rows where keys are beyond what a query attends to or, with `before`,
// before its window. Too few registers are left to hold what each row attends to.
template <int kKeys, typename T>
__device__ void mask_rows(float (&scores)[kKeys / 8][4], const FlashArguments<T>& a,
                          const TileQueries& queries, int first_row, int first_key, bool before) {
  int limits[2], begins[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = queries.of_row(first_row + threadIdx.x % kWarpSize / 4 + r * 8);
    limits[r] = queries.last_key<true>(a, query);
    begins[r] = queries.first_position + query - a.window + 1;
  }
  mask_scores<kKeys>(scores, first_key, limits);
  if (before) mask_before<kKeys>(scores, first_key, begins);
}

// The last key of each row of this thread, if every query attends to itself and what precedes it.
template <typename Tile>
__device__ inline void causal_limits(int (&limits)[Tile::kBands][2], const TileQueries& queries,
                                     int first_row) {
#pragma unroll
  for (int b = 0; b < Tile::kBands; ++b)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = first_row + b * 16 + threadIdx.x % kWarpSize / 4 + r * 8;
      limits[b][r] = queries.first_position + queries.of_row(row);
    }
}

// beyond, before: some keys may be beyond what a query attends to, or before its window. limits:
// the last key of each row, unless kBounded.
template <typename T, typename Tile, bool kBounded>
__device__ void attend_step(RowState<Tile::kDim> (&states)[Tile::kBands],
                            const FlashArguments<T>& a, const TileQueries& tile, uint32_t queries,
                            uint32_t keys, int row, int first_key, bool beyond, bool before,
                            const int (&limits)[Tile::kBands][2]) {
  constexpr int kBands = Tile::kBands, kKeys = Tile::kStepKeys;
  const int first_row = threadIdx.x / kWarpSize * 16 * kBands;
  float scores[kBands][kKeys / 8][4] = {};
#pragma unroll
  for (int column = 0; column < Tile::kDim; column += 16) {
    uint32_t q[kBands][4];
#pragma unroll
    for (int b = 0; b < kBands; ++b)
      load_matrices(q[b], matrices_at(queries, Tile::kStride, first_row + b * 16, column));
#pragma unroll
    for (int j = 0; j < kKeys / 16; ++j) {
      uint32_t k[4];
      load_matrices(k, matrices_by_rows(keys, Tile::kStride, row + j * 16, column));
#pragma unroll
      for (int b = 0; b < kBands; ++b) {
        mma<T>(scores[b][2 * j], q[b][0], q[b][1], q[b][2], q[b][3], k[0], k[1]);
        mma<T>(scores[b][2 * j + 1], q[b][0], q[b][1], q[b][2], q[b][3], k[2], k[3]);
      }
    }
  }
#pragma unroll
  for (int b = 0; b < kBands; ++b) {
    if constexpr (kBounded) {
      if (beyond || before)
        mask_rows<kKeys>(scores[b], a, tile, first_row + b * 16, first_key, before);
    } else if (beyond) {
      mask_scores<kKeys>(scores[b], first_key, limits[b]);
    }
    to_weights<kKeys>(scores[b], states[b], a.scale);
  }
#pragma unroll
  for (int step = 0; step < kKeys / 16; ++step) {
    uint32_t p[kBands][4];
#pragma unroll
    for (int b = 0; b < kBands; ++b) weight_fragment<T, kKeys>(p[b], scores[b], step);
#pragma unroll
    for (int j = 0; j < Tile::kDim / 16; ++j) {
      uint32_t v[4];
      load_transposed(v,
                      matrices_at(keys + Tile::kSideBytes, Tile::kStride, row + step * 16, j * 16));
#pragma unroll
      for (int b = 0; b < kBands; ++b) {
        mma<T>(states[b].sums[2 * j], p[b][0], p[b][1], p[b][2], p[b][3], v[0], v[1]);
        mma<T>(states[b].sums[2 * j + 1], p[b][0], p[b][1], p[b][2], p[b][3], v[2], v[3]);
      }
    }
  }
}

template <typename T, int kDim>
__device__ void write_rows(const RowState<kDim>& state, const FlashArguments<T>& a, int64_t token,
                           int kv_head, int first_row, int rows) {
  const int lane = threadIdx.x % kWarpSize, group = a.heads / a.kv_heads;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float inverse = 1.0f / whole_weight(state.weights[r]);
    const int row = first_row + lane / 4 + r * 8;
    if (row >= rows) continue;
    T* out = a.out + ((token + row / group) * a.heads + kv_head * group + row % group) * a.dim;
#pragma unroll
    for (int j = 0; j < kDim / 8; ++j)
      if (j * 8 < a.dim)
        *reinterpret_cast<uint32_t*>(out + j * 8 + lane % 4 * 2) =
            pack<T>(state.sums[j][2 * r] * inverse, state.sums[j][2 * r + 1] * inverse);
  }
}

template <typename T, typename Tile, bool kCodes, bool kBounded>
__global__ void __launch_bounds__(kThreads, 2)
    prefill_kernel(FlashArguments<T> a, const AttentionTile* tiles) {
  wait_for_earlier_launch();
  VALORA_DYNAMIC_SHARED(memory);
  const AttentionTile tile = tiles[blockIdx.x / a.kv_heads];
  if (tile.span < 0) return;
  const int kv_head = blockIdx.x % a.kv_heads, group = a.heads / a.kv_heads;
  const DeviceSpan span = a.spans[tile.span];
  const TileQueries queries{span.begin + tile.first_query, span.context + tile.first_query,
                            min(Tile::kRows / group, span.queries - tile.first_query), group};
  const int32_t* blocks = a.block_tables + span.first_block;
  const uint32_t query_tile = shared_address(memory), key_tiles = query_tile + Tile::kQueryBytes;

  const int first_row = threadIdx.x / kWarpSize * 16 * Tile::kBands;
  int limits[Tile::kBands][2] = {};
  if constexpr (!kBounded) causal_limits<Tile>(limits, queries, first_row);
  const auto last_key = [&](int query) { return queries.last_key<kBounded>(a, query); };
  const int first_limit = last_key(0), end = last_key(queries.count - 1) + 1;
  const int warp_limit = last_key(queries.of_row(first_row + 16 * Tile::kBands - 1));
  // Keys before warp_begin are before the windows of all queries of the warp, and keys from
  // last_begin on are before none of the tile.
  const bool windowed = kBounded && a.window > 0;
  const int first_begin = queries.first_position - a.window + 1;
  const int warp_begin = windowed ? first_begin + queries.of_row(first_row) : 0;
  const int last_begin = windowed ? first_begin + queries.count - 1 : 0;

  const auto copy = [&](int first, int stage) {
    const uint32_t to = key_tiles + stage * 2 * Tile::kSideBytes;
    if constexpr (kCodes)
      decode_keys<T, Tile>(to, a, blocks, kv_head, first, end);
    else
      copy_keys<T, Tile>(to, a, blocks, kv_head, first, end);
  };
  RowState<Tile::kDim> states[Tile::kBands];
  copy_queries<T, Tile::kDim>(query_tile, a, queries.token, kv_head, Tile::kRows,
                              queries.count * group);
  const int begin = kBounded ? first_key_of(queries.first_position, a.window) : 0;
  copy(begin, 0);
  commit_copies();
  for (int first = begin, stage = 0; first < end; first += Tile::kKeys, stage ^= 1) {
    wait_copies<0>();
    // Now the tile is visible to all threads, and none reads the other tile any longer.
    __syncthreads();
    if (first + Tile::kKeys < end) copy(first + Tile::kKeys, stage ^ 1);
    commit_copies();
    const uint32_t keys = key_tiles + stage * 2 * Tile::kSideBytes;
#pragma unroll 1
    for (int row = 0; row < Tile::kKeys; row += Tile::kStepKeys) {
      const int first_key = first + row;
      const int last_of_step = first_key + Tile::kStepKeys - 1;
      if (first_key > warp_limit) break;
      if (kBounded && last_of_step < warp_begin) continue;
      attend_step<T, Tile, kBounded>(states, a, queries, query_tile, keys, row, first_key,
                                     last_of_step > first_limit, kBounded && first_key < last_begin,
                                     limits);
    }
  }
#pragma unroll
  for (int b = 0; b < Tile::kBands; ++b)
    write_rows<T>(states[b], a, queries.token, kv_head, first_row + b * 16, queries.count * group);
}

template <typename T, typename Sizes, bool kCodes>
Status prefill_with(const AttentionCall& call) {
  const auto blocks = static_cast<unsigned>(call.sizes.tiles) * call.cache.kv_heads;
  return with_bounds(call, [&](auto bounded) {
    return launch(prefill_kernel<T, Sizes, kCodes, bounded.value>, blocks, kThreads, Sizes::kBytes,
                  call.stream, flash_arguments<T>(call), call.tables.tiles);
  });
}

template <typename T, int kDim, bool kCodes>
Status prefill_tiles(const AttentionCall& call) {
  using Usual = Tile<kDim, kDim <= 128 ? 64 : 32>;
  if constexpr (kDim == 128)
    if (Usual::kBytes > call.sizes.shared_bytes)
      return prefill_with<T, Tile<kDim, 32>, kCodes>(call);
  return prefill_with<T, Usual, kCodes>(call);
}

}  // namespace

Status prefill_attention(const AttentionCall& call) {
  if (call.sizes.tiles == 0) return cudaSuccess;
  return with_half_type(call.cache.dtype, [&](auto type) {
    using T = decltype(type);
    return with_dim(call.cache.dim, [&](auto dim) {
      return in_bytes(call.cache.format) ? prefill_tiles<T, dim.value, true>(call)
                                         : prefill_tiles<T, dim.value, false>(call);
    });
  });
}

}  // namespace valora::kernels::cuda
