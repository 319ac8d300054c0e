// The second launch: sums of rows, logits of listed tokens, and the best of the other tokens.
//
// Find the `wanted` groups with the largest maxima. Each of them has at least one token no lower
// than the smallest of these maxima, so that maximum bounds the best tokens from below. Few tokens
// besides the wanted ones exceed it, and only groups that contain some are read again. Logits are
// compared by bins between the largest logit and the smallest maximum of a group: a lower logit is
// never in a better bin, and equal logits share a bin.
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/sampling/row_reduce.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kBins = 2048, kThreadBins = kBins / kRowThreads;

struct Bins {
  float largest, scale;
  // logit: finite.
  __device__ int of(float logit) const {
    // For huge differences the product overflows or is NaN, which gives the last bin.
    return static_cast<int>(fminf((largest - logit) * scale, static_cast<float>(kBins - 1)));
  }
};

__device__ Bins bins_between(float largest, float lowest) {
  const float range = largest - lowest;
  return {largest, range > 1e-30f ? (kBins - 1) / range : 0.0f};
}

__device__ PartSums sums_of_row(const CandidateCall& call, const CandidateRow& row,
                                Candidate* bests, Totals* totals) {
  const int parts = parts_of(row.vocab);
  const PartSums* sums = call.results.parts + int64_t{blockIdx.x} * call.parts;
  Candidate best{no_logit(), -1};
  for (int i = threadIdx.x; i < parts; i += kRowThreads)
    best = better_of(best, {sums[i].largest, sums[i].best});
  best = block_best(best, bests);
  const double largest = best.logit;
  Totals own{0, 0, 0, 1};
  for (int i = threadIdx.x; i < parts; i += kRowThreads) {
    own.numbers &= sums[i].numbers;
    if (sums[i].best < 0) continue;
    const double below = sums[i].largest - largest;
    own.count += sums[i].count;
    if (row.sum != 0) own.sum += sums[i].sum * exp(below);
    if (row.scale > 0) own.scaled_sum += sums[i].scaled_sum * exp(below * row.scale);
  }
  const Totals all = block_totals(own, totals);
  return {all.sum, all.scaled_sum, best.logit, best.id, all.count, all.numbers};
}

// The smallest maximum among groups that have one, returned to every thread.
__device__ float lowest_group(const float* groups, int count, float largest, float* shared) {
  float lowest = largest;
  for (int i = threadIdx.x; i < count; i += kRowThreads)
    if (groups[i] > no_logit()) lowest = fminf(lowest, groups[i]);
  lowest = -warp_max(-lowest);
  if (threadIdx.x % kWarpSize == 0) shared[threadIdx.x / kWarpSize] = lowest;
  __syncthreads();
  for (int i = 0; i < kRowWarps; ++i) lowest = fminf(lowest, shared[i]);
  return lowest;
}

// The first bin such that the bins up to it hold at least `wanted` groups, returned to every
// thread; the last bin if there are fewer groups. sums: [kRowThreads].
__device__ int bin_of(int wanted, const int* histogram, int* sums, int* found) {
  const int thread = threadIdx.x;
  int own = 0;
  for (int i = 0; i < kThreadBins; ++i) own += histogram[thread * kThreadBins + i];
  sums[thread] = own;
  if (thread == 0) *found = kBins - 1;
  __syncthreads();
  for (int step = 1; step < kRowThreads; step *= 2) {
    const int before = thread >= step ? sums[thread - step] : 0;
    __syncthreads();
    sums[thread] += before;
    __syncthreads();
  }
  int total = sums[thread] - own;
  if (total < wanted && sums[thread] >= wanted)
    for (int i = 0; i < kThreadBins; ++i) {
      total += histogram[thread * kThreadBins + i];
      if (total < wanted) continue;
      *found = thread * kThreadBins + i;
      break;
    }
  __syncthreads();
  return *found;
}

// gridDim: rows.
__global__ void __launch_bounds__(kRowThreads, 2) rows_kernel(CandidateCall call) {
  wait_for_earlier_launch();
  VALORA_SHARED(Candidate, bests, [kRowWarps]);
  VALORA_SHARED(Totals, totals, [kRowWarps]);
  VALORA_SHARED(float, lowest_of_warp, [kRowWarps]);
  VALORA_SHARED(int, histogram, [kBins]);
  VALORA_SHARED(int, sums, [kRowThreads]);
  VALORA_SHARED(int, found, [2]);  // a bin and a token count
  const CandidateRow row = call.tables.rows[blockIdx.x];
  const int thread = threadIdx.x;
  const float* logits = call.logits + row.row * call.stride;
  for (int i = thread; i < row.listed; i += kRowThreads)
    call.results.listed[row.listed_begin + i] = logits[call.tables.listed[row.listed_begin + i]];
  const PartSums all = sums_of_row(call, row, bests, totals);
  RowSums& result = call.results.rows[blockIdx.x];
  if (thread == 0) result = {all, 0, 0};
  if (row.wanted <= 1 || all.best < 0 || all.numbers == 0) return;

  const float* groups = call.workspace + int64_t{row.groups_row} * call.parts * kRowThreads;
  const int count = parts_of(row.vocab) * kRowThreads;
  for (int i = thread; i < kBins; i += kRowThreads) histogram[i] = 0;
  const Bins bins =
      bins_between(all.largest, lowest_group(groups, count, all.largest, lowest_of_warp));
  for (int i = thread; i < count; i += kRowThreads)
    if (groups[i] > no_logit()) atomicAdd(&histogram[bins.of(groups[i])], 1);
  if (thread == 0) found[1] = 0;
  __syncthreads();
  const int last = bin_of(row.wanted, histogram, sums, &found[0]);
  for (int group = thread; group < count; group += kRowThreads) {
    if (!(groups[group] > no_logit()) || bins.of(groups[group]) > last) continue;
    const int first = group / kRowThreads * kPartTokens + group % kRowThreads;
    for (int i = 0; i < kGroupTokens; ++i) {
      const int token = first + i * kRowThreads;
      if (token >= row.vocab) break;
      const float logit = logits[token];
      if (!(logit > no_logit()) || bins.of(logit) > last) continue;
      if (((others_of_word(row, call.tables, token / 32) >> (token % 32)) & 1) == 0) continue;
      const int place = atomicAdd(&found[1], 1);
      if (place < row.most_best) call.results.best[row.best_begin + place] = {logit, token};
    }
  }
  __syncthreads();
  if (thread == 0 && found[1] <= row.most_best) result.best_count = found[1];
}

}  // namespace

Status launch_rows(const CandidateCall& call, Stream stream) {
  return launch(rows_kernel, static_cast<unsigned>(call.rows), kRowThreads, 0, stream, call);
}

size_t candidate_workspace(int32_t best, int32_t parts) {
  return static_cast<size_t>(best) * static_cast<size_t>(parts) * kRowThreads;
}

int32_t candidate_room(int32_t wanted) { return wanted > 1 ? wanted + wanted / 4 + 64 : 0; }

Status find_candidates(const CandidateCall& call, Stream stream) {
  if (call.rows == 0) return cudaSuccess;
  const Status status = launch_parts(call, stream);
  return status != cudaSuccess ? status : launch_rows(call, stream);
}

}  // namespace valora::kernels::cuda
