// Computes B A as merge.cu does, but B of a thread block's 128 outputs stays in shared memory for
// all of its inputs, while parts of 32 ranks of A pass through a ring of stages. So A is read half
// as often, B once, and copies run during the products, also from one step of 128 inputs to the
// next.
#include "kernels/cuda/device/factor.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/mma.cuh"
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/device/shared.cuh"
#include "kernels/cuda/device/vector.cuh"
#include "kernels/cuda/merge/find_tile.cuh"
#include "kernels/cuda/merge/fragments.cuh"
#include "kernels/cuda/merge/weights.cuh"
#include "kernels/cuda/merge/variants.h"

namespace valora::kernels::cuda {
namespace {

// Warps: 4 down the outputs, 32 each, by 2 across the inputs, 64 each. Squarer tiles of a warp than
// those of merge.cu need fewer bytes of shared memory per product.
constexpr int kDown = 4, kAcross = 2, kWarps = kDown * kAcross, kThreads = kWarps * kWarpSize;
constexpr int kBands = 2, kOuts = kBands * 16;                          // of a warp
constexpr int kGroups = 2, kIns = kGroups * 32;                         // of a warp
constexpr int kColumns = kAcross * kIns;                                // inputs per step
constexpr int kRanks = 32;                                              // per stage
constexpr int kAStride = kColumns + 8, kStageSize = kRanks * kAStride;  // avoids bank conflicts
static_assert(kDown * kOuts == kWideMergeRows && kMergeColumns % kColumns == 0);
static_assert(kWarps * kCudaMergeOuts == kWideMergeRows);

__host__ __device__ constexpr int padded_rank(int rank) { return (rank + 15) / 16 * 16; }
// Elements between rows of B. An odd number of 16 bytes, which avoids bank conflicts.
__host__ __device__ constexpr int b_stride(int rank) { return padded_rank(rank) + 8; }

// Where the next part of A comes from: parts of ranks, then steps of inputs.
struct Part {
  int in, rank;

  __device__ void advance(int end_rank) {
    rank += kRanks;
    if (rank < end_rank) return;
    rank = 0, in += kColumns;
  }
};

// The ranks of a part, in whole fragments.
__device__ inline int ranks_of(const Part& part, int rank) {
  return padded_rank(min(kRanks, rank - part.rank));
}

// Zeros beyond the factor.
template <typename T>
__device__ void copy_a(T* stage, const DeviceLoraModule& m, const Part& part, int end_in) {
  const int ranks = ranks_of(part, m.rank);
  for (int i = threadIdx.x; i < ranks * (kColumns / 8); i += kThreads) {
    const int row = i / (kColumns / 8), column = i % (kColumns / 8) * 8;
    const bool valid = part.rank + row < m.rank && part.in + column < end_in;
    const T* source = valid ? factor_row<T>(m.a, part.rank + row, m.in) + part.in + column
                            : factor_row<T>(m.a, 0, m.in);
    copy_async(shared_address(stage + row * kAStride + column), source, valid);
  }
}

// All ranks of the thread block's outputs, with zeros beyond the factor.
template <typename T>
__device__ void copy_b(T* b, const DeviceLoraModule& m, int first_out) {
  const bool whole = m.rank % 8 == 0;  // rows are aligned
  const int vectors = padded_rank(m.rank) / 8, stride = b_stride(m.rank);
  for (int i = threadIdx.x; i < kWideMergeRows * vectors; i += kThreads) {
    const int row = i / vectors, rank = i % vectors * 8;
    const bool valid = first_out + row < m.out && rank < m.rank;
    const T* source = factor_row<T>(m.b, valid ? first_out + row : 0, m.rank) + (valid ? rank : 0);
    T* to = b + row * stride + rank;
    if (whole) {
      copy_async(shared_address(to), source, valid);
    } else {
      for (int j = 0; j < 8; ++j)
        to[j] = valid && rank + j < m.rank ? source[j] : from_float<T>(0.0f);
    }
  }
}

// sums += B A for this warp's outputs and inputs. b, a: of the stage's first rank.
template <typename T>
__device__ void multiply(float (&sums)[kBands][kIns / 8][4], const T* b, int stride, const T* a,
                         int ranks) {
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int row = lane % 16, column = lane / 16 * 8;
  b += (warp % kDown * kOuts + row) * stride + column;
  a += row * kAStride + warp / kDown * kIns + column;
#pragma unroll 1  // more iterations at once take more registers than there are
  for (int k = 0; k < ranks; k += 16) {
    uint32_t left[kBands][4];
#pragma unroll
    for (int band = 0; band < kBands; ++band)
      load_matrices(left[band], shared_address(b + band * 16 * stride + k));
#pragma unroll
    for (int j = 0; j < kIns / 16; ++j) {
      uint32_t right[4];
      load_transposed(right, shared_address(a + k * kAStride + j * 16));
#pragma unroll
      for (int band = 0; band < kBands; ++band) {
        const uint32_t (&l)[4] = left[band];
        mma<T>(sums[band][2 * j], l[0], l[1], l[2], l[3], right[0], right[1]);
        mma<T>(sums[band][2 * j + 1], l[0], l[1], l[2], l[3], right[2], right[3]);
      }
    }
  }
}

// This warp's weights of a step. Calls body(weights, out, column, band, half of the band, group).
template <typename Weights, typename Body>
__device__ void each_run(Weights (&weights)[kBands][2][kGroups], int first_out, int first_in,
                         const Body& body) {
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int band = 0; band < kBands; ++band)
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int group = 0; group < kGroups; ++group)
        body(weights[band][r][group],
             first_out + warp % kDown * kOuts + band * 16 + r * 8 + lane / 4,
             first_in + warp / kDown * kIns + group * 32 + lane % 4 * 8, band, r, group);
}

// Dynamic shared memory: B, then the stages.
template <typename T, int kBits, int kStages>
__global__ void __launch_bounds__(kThreads, 2) wide_kernel(const DeviceMerge* merges, int count) {
  wait_for_earlier_launch();
  VALORA_DYNAMIC_SHARED(memory);
  const MergeTile tile = find_tile(merges, count, kWideMergeRows);
  // Read where they are used: copies would take registers that the sums need.
  const MergeItem& item = *tile.item;
  const DeviceLoraModule& m = item.module;
  const int stride = b_stride(m.rank);
  T* const b = reinterpret_cast<T*>(memory);
  T* const stages = b + kWideMergeRows * stride;
  copy_b(b, m, tile.first_out);
  Part next{tile.first_in, 0};
  int to = 0, from = 0;  // stages
  // One group per part, empty behind the last one.
  const auto copy_next = [&] {
    if (next.in < tile.end_in) copy_a(stages + to * kStageSize, m, next, tile.end_in);
    commit_copies();
    next.advance(m.rank);
    to = to + 1 < kStages ? to + 1 : 0;
  };
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) copy_next();
  for (int in = tile.first_in; in < tile.end_in; in += kColumns) {
    EightWeights<T, kBits> weights[kBands][2][kGroups];
    each_run(weights, tile.first_out, in, [&](auto& w, int out, int column, int, int, int) {
      if (out < m.out && column < tile.end_in) w.load(item, out, column);
    });
    float sums[kBands][kIns / 8][4] = {};
    for (int first = 0; first < m.rank; first += kRanks) {
      wait_copies<kStages - 2>();
      __syncthreads();  // the part is there, and no thread still reads the one before
      copy_next();
      multiply(sums, b + first, stride, stages + from * kStageSize, ranks_of({in, first}, m.rank));
      from = from + 1 < kStages ? from + 1 : 0;
    }
    const int outs = m.out, ins = m.in;
    const float coefficient = item.coefficient;
    T* const merged = static_cast<T*>(item.merged);
    each_run(weights, tile.first_out, in,
             [&](auto& w, int out, int column, int band, int r, int group) {
               float columns[8];
               transpose_in_fours(sums[band] + group * 4, r, columns);
               if (out >= outs || column >= tile.end_in) return;
               w.add(item, out, column, coefficient, columns);
               store<T, 8>(merged + static_cast<int64_t>(out) * ins + column, columns);
             });
  }
}

template <typename T, int kStages>
Status wide_with(const MergePlan& plan, const DeviceMerge* merges, Stream stream) {
  const int elements = kWideMergeRows * b_stride(plan.max_rank) + kStages * kStageSize;
  return with_weights(plan.bits, [&](auto bits) {
    return launch(wide_kernel<T, bits, kStages>, static_cast<unsigned>(plan.tiles), kThreads,
                  elements * sizeof(T), stream, merges, static_cast<int>(plan.merges.size()));
  });
}

}  // namespace

Status merge_wide(Dtype dtype, const MergePlan& plan, const DeviceMerge* merges, Stream stream) {
  return with_half_type(dtype, [&](auto type) {
    using T = decltype(type);
    return plan.tile.stages >= 3 ? wide_with<T, 3>(plan, merges, stream)
                                 : wide_with<T, 2>(plan, merges, stream);
  });
}

}  // namespace valora::kernels::cuda
