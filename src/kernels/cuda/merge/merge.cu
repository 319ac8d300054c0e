// Computes B A with tensor cores while the weights stream past. A thread block takes 64 outputs and
// walks over its inputs, 128 at a time. In each step, A is staged in shared memory (its rows are
// the product's k, so ldmatrix transposes it) while the weights are being loaded.
#include "kernels/cuda/device/factor.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/mma.cuh"
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/device/shared.cuh"
#include "kernels/cuda/device/vector.cuh"
#include "kernels/cuda/merge/find_tile.cuh"
#include "kernels/cuda/merge/fragments.cuh"
#include "kernels/cuda/merge/variants.h"
#include "kernels/cuda/merge/weights.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kWarps = 4;  // 16 outputs each
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kColumns = 128;  // inputs per step
constexpr int kRanks = 64;     // per step
constexpr int kGroups = kColumns / 32;
constexpr int kAStride = kColumns + 8, kBStride = kRanks + 8;  // avoids bank conflicts
static_assert(kWarps * 16 == kMergeRows);

// Shared memory: A [kRanks, kColumns] and B [kMergeRows, kRanks], with zeros beyond the factors.
template <typename T>
struct Stage {
  T a[kRanks * kAStride];
  T b[kMergeRows * kBStride];
};

template <typename T>
__device__ void copy_a(Stage<T>& stage, const DeviceLoraModule& m, int first_rank, int ranks,
                       int first_in, int end_in) {
  for (int i = threadIdx.x; i < ranks * (kColumns / 8); i += kThreads) {
    const int row = i / (kColumns / 8), column = i % (kColumns / 8) * 8;
    const bool valid = first_rank + row < m.rank && first_in + column < end_in;
    const T* source = valid ? factor_row<T>(m.a, first_rank + row, m.in) + first_in + column
                            : factor_row<T>(m.a, 0, m.in);
    copy_async(shared_address(stage.a + row * kAStride + column), source, valid);
  }
}

template <typename T>
__device__ void copy_b(Stage<T>& stage, const DeviceLoraModule& m, int first_rank, int ranks,
                       int first_out) {
  const bool whole = m.rank % 8 == 0;  // rows are aligned
  for (int i = threadIdx.x; i < kMergeRows * (ranks / 8); i += kThreads) {
    const int row = i / (ranks / 8), column = i % (ranks / 8) * 8, rank = first_rank + column;
    const bool valid = first_out + row < m.out && rank < m.rank;
    const T* source = factor_row<T>(m.b, valid ? first_out + row : 0, m.rank) + (valid ? rank : 0);
    T* to = stage.b + row * kBStride + column;
    if (whole) {
      copy_async(shared_address(to), source, valid);
    } else {
      for (int j = 0; j < 8; ++j)
        to[j] = valid && rank + j < m.rank ? source[j] : from_float<T>(0.0f);
    }
  }
}

// sums += B A over `ranks` staged ranks, for this warp's 16 outputs.
template <typename T>
__device__ void multiply(float (&sums)[kColumns / 8][4], const Stage<T>& stage, int ranks) {
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int row = lane % 16, column = lane / 16 * 8;
  for (int k = 0; k < ranks; k += 16) {
    uint32_t b[4];
    load_matrices(b, shared_address(stage.b + (warp * 16 + row) * kBStride + k + column));
#pragma unroll
    for (int j = 0; j < kColumns / 16; ++j) {
      uint32_t a[4];
      load_transposed(a, shared_address(stage.a + (k + row) * kAStride + j * 16 + column));
      mma<T>(sums[2 * j], b[0], b[1], b[2], b[3], a[0], a[1]);
      mma<T>(sums[2 * j + 1], b[0], b[1], b[2], b[3], a[2], a[3]);
    }
  }
}

template <typename T, int kBits>
__global__ void __launch_bounds__(kThreads, 4) merge_kernel(const DeviceMerge* merges, int count) {
  wait_for_earlier_launch();
  VALORA_SHARED(Stage<T>, stage, );
  const MergeTile tile = find_tile(merges, count, kMergeRows);
  const MergeItem item = *tile.item;
  const DeviceLoraModule& m = item.module;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int out = tile.first_out + warp * 16 + lane / 4;
  const bool one_step = m.rank <= kRanks;
  for (int in = tile.first_in; in < tile.end_in; in += kColumns) {
    EightWeights<T, kBits> weights[2][kGroups];
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const int column = in + group * 32 + lane % 4 * 8;
        if (out + r * 8 < m.out && column < tile.end_in)
          weights[r][group].load(item, out + r * 8, column);
      }
    float sums[kColumns / 8][4] = {};
    for (int first = 0; first < m.rank; first += kRanks) {
      const int ranks = (min(kRanks, m.rank - first) + 15) / 16 * 16;
      __syncthreads();  // no thread is still reading the stage
      copy_a(stage, m, first, ranks, in, tile.end_in);
      if (!one_step || in == tile.first_in) copy_b(stage, m, first, ranks, tile.first_out);
      commit_copies();
      wait_copies<0>();
      __syncthreads();
      multiply(sums, stage, ranks);
    }
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        float columns[8];
        transpose_in_fours(sums + group * 4, r, columns);
        const int column = in + group * 32 + lane % 4 * 8;
        if (out + r * 8 >= m.out || column >= tile.end_in) continue;
        weights[r][group].add(item, out + r * 8, column, item.coefficient, columns);
        store<T, 8>(
            static_cast<T*>(item.merged) + static_cast<int64_t>(out + r * 8) * m.in + column,
            columns);
      }
  }
}

}  // namespace

Status merge(Dtype dtype, const MergePlan& plan, const DeviceMerge* merges, Stream stream) {
  if (plan.tiles == 0) return cudaSuccess;
  if (dtype == Dtype::kFloat || !plan.aligned) return merge_plain(dtype, plan, merges, stream);
  if (plan.tile.width == kWideMergeRows) return merge_wide(dtype, plan, merges, stream);
  return with_half_type(dtype, [&](auto type) {
    using T = decltype(type);
    return with_weights(plan.bits, [&](auto bits) {
      return launch(merge_kernel<T, bits>, static_cast<unsigned>(plan.tiles), kThreads, 0, stream,
                    merges, static_cast<int>(plan.merges.size()));
    });
  });
}

}  // namespace valora::kernels::cuda
