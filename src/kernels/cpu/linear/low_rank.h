// What the adapters add to one linear, apart from the linear itself (VaLoRA §4.3): for
// measurements, and wherever the dense product was computed elsewhere. project() runs the same
// pieces in its own launch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/parallel.h"
#include "kernels/cpu/linear/project.h"
#include "kernels/tiles/tile.h"

namespace valora::kernels {

// y[t] += coefficient · scale · (x[t] Aᵀ) Bᵀ for this module of every segment that covers token t,
// in one launch. x: [m, in], rows ldx elements apart; y: [m, out] in fp32, rows ldy apart. `tile`:
// that of every product, in place of the chosen ones.
template <typename T>
void low_rank(const T* x, int64_t m, int64_t ldx, float* y, int64_t ldy, int module,
              std::span<const LoraSegment> segments, const ParallelFor& parallel,
              std::optional<CpuTile> tile = {});

}  // namespace valora::kernels
