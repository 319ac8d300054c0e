// The first launch: sums over parts of rows, and the largest logit in each group of tokens.
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/sampling/row_reduce.cuh"

namespace valora::kernels::cuda {
namespace {

// gridDim: parts, rows.
__global__ void __launch_bounds__(kRowThreads, 2) parts_kernel(CandidateCall call) {
  wait_for_earlier_launch();
  VALORA_SHARED(uint32_t, others, [kPartTokens / 32]);
  VALORA_SHARED(Candidate, bests, [kRowWarps]);
  VALORA_SHARED(Totals, totals, [kRowWarps]);
  const CandidateRow row = call.tables.rows[blockIdx.y];
  const int begin = blockIdx.x * kPartTokens, thread = threadIdx.x;
  if (begin >= row.vocab) return;
  const float* logits = call.logits + row.row * call.stride + begin;
  const int count = min(kPartTokens, row.vocab - begin);
  float values[kGroupTokens];
#pragma unroll
  for (int i = 0; i < kGroupTokens; ++i) {
    const int token = i * kRowThreads + thread;
    values[i] = token < count ? logits[token] : no_logit();
  }
  if (thread < kPartTokens / 32)
    others[thread] = others_of_word(row, call.tables, begin / 32 + thread);
  __syncthreads();

  Candidate best{no_logit(), -1};
  Totals own{0, 0, 0, 1};
#pragma unroll
  for (int i = 0; i < kGroupTokens; ++i) {
    const int token = i * kRowThreads + thread;
    if (!(values[i] < -no_logit())) own.numbers = 0;
    if (((others[token / 32] >> (token % 32)) & 1) == 0) values[i] = no_logit();
    if (values[i] > no_logit()) ++own.count;
    if (values[i] > best.logit) best = {values[i], begin + token};
  }
  if (row.wanted > 1)
    call.workspace[(int64_t{row.groups_row} * call.parts + blockIdx.x) * kRowThreads + thread] =
        best.logit;
  best = block_best(best, bests);
  const double largest = best.logit;
  if (row.sum != 0 || row.scale > 0) {
#pragma unroll
    for (int i = 0; i < kGroupTokens; ++i) {
      if (!(values[i] > no_logit())) continue;
      const double below = values[i] - largest;
      if (row.sum != 0) own.sum += exp(below);
      if (row.scale > 0) own.scaled_sum += exp(below * row.scale);
    }
  }
  const Totals all = block_totals(own, totals);
  if (thread == 0)
    call.results.parts[int64_t{blockIdx.y} * call.parts + blockIdx.x] = {
        all.sum, all.scaled_sum, best.logit, best.id, all.count, all.numbers};
}

}  // namespace

Status launch_parts(const CandidateCall& call, Stream stream) {
  return launch(parts_kernel,
                dim3(static_cast<unsigned>(call.parts), static_cast<unsigned>(call.rows)),
                kRowThreads, 0, stream, call);
}

}  // namespace valora::kernels::cuda
