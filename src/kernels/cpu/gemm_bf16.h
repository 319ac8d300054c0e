// Products with bf16 weights in panels, fp32 accumulation (DESIGN §4).
//
// A panel holds 16 outputs: [K/2][16][2] bf16, zero-padded in both directions, so one 64-byte vector
// feeds one vdpbf16ps. The same layout serves dense weights (N = out), LoRA A (N = rank) and B (K = rank),
// and every instruction set (isa.h).
#pragma once

#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "kernels/cpu/bf16.h"

namespace valora::kernels {

struct Panels {
  const bf16* data = nullptr;
  int64_t n = 0;  // outputs
  int64_t k = 0;  // inputs
};

constexpr int64_t panels_of(int64_t n) { return (n + 15) / 16; }
constexpr int64_t panel_elements(int64_t k) { return (k + 1) / 2 * 32; }
// Elements of the packed form of an [n, k] matrix.
constexpr int64_t packed_elements(int64_t n, int64_t k) { return panels_of(n) * panel_elements(k); }
// w: [n, k] row-major → panels.
void pack_panels(const bf16* w, int64_t n, int64_t k, bf16* panels);

// y[m, n] = x[m, k] · wᵀ (+ bias[n]). Rows of x and y are ldx and ldy elements apart.
// Y is bf16 or float.
template <typename Y>
void gemm_bf16(const bf16* x, int64_t m, int64_t ldx, const Panels& w, const float* bias, Y* y, int64_t ldy,
               const ParallelFor& parallel);

// One run of tokens under one adapter on one linear: y[t] += coefficient · (x[t] Aᵀ) Bᵀ.
struct LoraRun {
  int64_t token_begin = 0;
  int64_t token_end = 0;
  Panels a;  // n = rank, k = in
  Panels b;  // n = out, k = rank
  float coefficient = 1;
};

// All runs of one linear in one parallel launch. The rank-wide intermediate is rounded to bf16, as the
// reference's is. Runs may not overlap in tokens unless they are processed in order by one thread, so
// overlapping runs (sums of adapters) must be in separate calls.
void lora_bf16(const bf16* x, int64_t ldx, bf16* y, int64_t ldy, std::span<const LoraRun> runs,
               const ParallelFor& parallel);

}  // namespace valora::kernels
