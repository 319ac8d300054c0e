// Low-rank products as computed by other systems, and ours. Each contender adds to its own output,
// and converts the weights to its layout in advance. The problem must outlive it.
#pragma once

#include <optional>

#include "kernels/tiles/tile.h"
#include "lab/ops/atmm_problem.h"

namespace valora::bench {

// kernels::low_rank with tuned tiles, or with one given tile for all products.
Contender our_products(const AtmmProblem& problem, std::string name,
                       std::optional<kernels::CpuTile> tile = {});

// Our kernel with each of the tiles, all sharing one copy of the weights.
std::vector<Runner> tiled_products(const AtmmProblem& problem,
                                   const std::vector<kernels::CpuTile>& tiles);

// Two at::linear and one addition per adapter.
Contender aten_products(const AtmmProblem& problem);

// S-LoRA §5 during decode, like Punica's BGMV: each token gathers its adapter's rank rows from the
// paged pool and computes dot products in fp32, without matrix units.
Contender rank_row_products(const AtmmProblem& problem);

// Punica's SGMV: one static tile of 64 outputs × 16 rows, reduced to fit the registers. Smaller
// ranks are padded to 64.
Contender static_tile_products(const AtmmProblem& problem);

// dLoRA: all adapters stacked and padded to the largest rank, an einsum over all of them, and a
// one-hot mask.
Contender einsum_products(const AtmmProblem& problem);

}  // namespace valora::bench
