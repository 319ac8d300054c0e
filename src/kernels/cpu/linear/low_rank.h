// The low-rank products of one linear's adapters, without the dense product (VaLoRA §4.3): for
// benchmarks, and for dense products computed elsewhere. project() runs the same pieces in its own
// launch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/threads/parallel.h"
#include "kernels/cpu/linear/project.h"
#include "kernels/tiles/tile.h"

namespace valora::kernels {

// For this module of every segment that covers token t: y[t] += coefficient · scale · (x[t] Aᵀ) Bᵀ,
// all in one launch. x: [m, in] with a row stride of ldx elements. y: [m, out] in fp32 with a row
// stride of ldy. The rank-wide intermediate is rounded to T. tile: replaces the tuned tiles for all
// products.
template <typename T>
void low_rank(const T* x, int64_t m, int64_t ldx, float* y, int64_t ldy, int module,
              std::span<const LoraSegment> segments, const ParallelFor& parallel,
              std::optional<CpuTile> tile = {});

}  // namespace valora::kernels
