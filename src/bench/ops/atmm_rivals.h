// The ways in which others compute what adapters add to a linear, and ours. Each adds to an output
// of its own and keeps what it needs of the problem in the form it likes; the problem must outlive
// it.
#pragma once

#include <optional>

#include "bench/ops/atmm_problem.h"
#include "kernels/tiles/tile.h"

namespace valora::bench {

// kernels::low_rank, with the tile that is chosen for each product, or with one for all.
Contender our_products(const AtmmProblem& problem, std::string name,
                       std::optional<kernels::CpuTile> tile = {});

// Ours with each of the tiles, over one copy of the weights.
std::vector<Runner> tiled_products(const AtmmProblem& problem,
                                   const std::vector<kernels::CpuTile>& tiles);

// Two at::linear and an addition an adapter.
Contender aten_products(const AtmmProblem& problem);

// S-LoRA §5 in decode (and before it Punica's BGMV): each token gathers its adapter's rank rows
// from the pool, wherever they lie, and takes dot products in fp32, without matrix units.
Contender rank_row_products(const AtmmProblem& problem);

// Punica's SGMV: one static tile, 64 outputs wide and 16 rows high or what of that fits in
// registers; a smaller rank is padded to 64.
Contender static_tile_products(const AtmmProblem& problem);

// dLoRA: all adapters stacked, padded to the largest rank; einsum over all of them, and a one-hot
// mask.
Contender einsum_products(const AtmmProblem& problem);

}  // namespace valora::bench
