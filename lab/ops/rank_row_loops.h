// Products with single adapter rows, as in the decode kernels of S-LoRA and Punica: fp32 dot
// products of bf16 vectors, compiled for the host's instruction sets.
#pragma once

#include <cstdint>

#include "kernels/types/bf16.h"

namespace valora::bench {

// x · row, both with `count` elements.
float dot_row(const kernels::bf16* x, const kernels::bf16* row, int64_t count);

// y[i] += Σ_r low[r] · rows[r][i] for i < count, in fp32, rounded once.
void add_rows(const float* low, const kernels::bf16* const* rows, int64_t rank, int64_t count,
              kernels::bf16* y);
void add_rows(const float* low, const kernels::bf16* const* rows, int64_t rank, int64_t count,
              float* y);

}  // namespace valora::bench
