// The AVX-512-BF16 body of gemm_bf16: one thread, a range of panels.
#pragma once

#include <cstdint>

#include "kernels/cpu/gemm_bf16.h"

namespace valora::kernels {

inline int64_t panels_of(int64_t n) { return (n + 15) / 16; }
inline int64_t panel_elements(int64_t k) { return (k + 1) / 2 * 32; }

namespace avx512 {

// y = x · wᵀ (+ bias) over panels [panel_begin, panel_end).
template <typename Y>
void gemm_tile_store(const bf16* x, int64_t m, int64_t ldx, const Panels& w, int64_t panel_begin, int64_t panel_end,
                     const float* bias, Y* y, int64_t ldy);

// y += coefficient · x · wᵀ, added in fp32 and rounded once.
void gemm_tile_add(const bf16* x, int64_t m, int64_t ldx, const Panels& w, int64_t panel_begin, int64_t panel_end,
                   float coefficient, bf16* y, int64_t ldy);

}  // namespace avx512
}  // namespace valora::kernels
