// Shared by the kernels of this folder: which tokens of a row count, and reductions over a thread
// block.
#pragma once

#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/device/shared.cuh"
#include "kernels/cuda/sampling.h"

namespace valora::kernels::cuda {

// Threads per block. Each thread of a part handles a group of tokens: its own index plus multiples
// of kRowThreads.
inline constexpr int kRowThreads = 256;
inline constexpr int kGroupTokens = kPartTokens / kRowThreads;
inline constexpr int kRowWarps = kRowThreads / kWarpSize;

__device__ inline float no_logit() { return -__uint_as_float(0x7f800000u); }

// Index, in the whole table, of the row's first listed token that is not below id.
__device__ inline int first_listed(const CandidateRow& row, const int32_t* listed, int id) {
  int begin = row.listed_begin, count = row.listed;
  while (count > 0) {
    const int half = count / 2;
    const bool below = listed[begin + half] < id;
    begin = below ? begin + half + 1 : begin;
    count = below ? count - half - 1 : half;
  }
  return begin;
}

// One bit for each of 32 tokens: set if the token is one of the others.
__device__ inline uint32_t others_of_word(const CandidateRow& row, const CandidateTables& tables,
                                          int word) {
  uint32_t bits = 0xffffffffu;
  if (row.allowed_words >= 0)
    bits = word < row.allowed_words ? tables.allowed[row.allowed_begin + word] : 0;
  const int end = row.listed_begin + row.listed;
  for (int i = first_listed(row, tables.listed, 32 * word); i < end; ++i) {
    const int bit = tables.listed[i] - 32 * word;
    if (bit >= 32) break;
    bits &= ~(uint32_t{1} << bit);
  }
  return bits;
}

__device__ inline int parts_of(int vocab) { return (vocab + kPartTokens - 1) / kPartTokens; }

// The better of two candidates (kernels::better()). An id below 0 means no token.
__device__ inline Candidate better_of(Candidate a, Candidate b) {
  const bool second =
      b.id >= 0 && (a.id < 0 || b.logit > a.logit || (b.logit == a.logit && b.id < a.id));
  return second ? b : a;
}

// The best candidate of all threads, returned to every thread. shared: [kRowWarps].
__device__ inline Candidate block_best(Candidate own, Candidate* shared) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
    Candidate other;
    other.logit = __shfl_xor_sync(kAllLanes, own.logit, offset);
    other.id = __shfl_xor_sync(kAllLanes, own.id, offset);
    own = better_of(own, other);
  }
  if (threadIdx.x % kWarpSize == 0) shared[threadIdx.x / kWarpSize] = own;
  __syncthreads();
  for (int i = 0; i < kRowWarps; ++i) own = better_of(own, shared[i]);
  return own;
}

struct Totals {
  double sum, scaled_sum;
  int count, numbers;
};

// The sums over all threads, returned to every thread; `numbers` is true if it is in all of them.
// shared: [kRowWarps].
__device__ inline Totals block_totals(Totals own, Totals* shared) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
    own.sum += __shfl_xor_sync(kAllLanes, own.sum, offset);
    own.scaled_sum += __shfl_xor_sync(kAllLanes, own.scaled_sum, offset);
    own.count += __shfl_xor_sync(kAllLanes, own.count, offset);
    own.numbers &= __shfl_xor_sync(kAllLanes, own.numbers, offset);
  }
  if (threadIdx.x % kWarpSize == 0) shared[threadIdx.x / kWarpSize] = own;
  __syncthreads();
  Totals all = shared[0];
  for (int i = 1; i < kRowWarps; ++i) {
    all.sum += shared[i].sum;
    all.scaled_sum += shared[i].scaled_sum;
    all.count += shared[i].count;
    all.numbers &= shared[i].numbers;
  }
  return all;
}

Status launch_parts(const CandidateCall& call, Stream stream);
Status launch_rows(const CandidateCall& call, Stream stream);

}  // namespace valora::kernels::cuda
