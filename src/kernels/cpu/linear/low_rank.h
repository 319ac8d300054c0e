// The low-rank products of the adapters of one linear, without the dense product (VaLoRA §4.3). For
// benchmarks, and for a dense product that was computed elsewhere. project() runs the same pieces
// in its own launch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/parallel.h"
#include "kernels/cpu/linear/project.h"
#include "kernels/tiles/tile.h"

namespace valora::kernels {

// y[t] += coefficient · scale · (x[t] Aᵀ) Bᵀ for this module of every segment that covers token t,
// in one launch. x: [m, in] with a row stride of ldx elements. y: [m, out] in fp32 with a row
// stride of ldy. The rank-wide intermediate is rounded to T. tile: used for every product instead
// of the tuned tiles.
template <typename T>
void low_rank(const T* x, int64_t m, int64_t ldx, float* y, int64_t ldy, int module,
              std::span<const LoraSegment> segments, const ParallelFor& parallel,
              std::optional<CpuTile> tile = {});

}  // namespace valora::kernels
