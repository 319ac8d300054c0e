// Finds the best single tile for all low-rank products: an upper bound for a library with one
// static tile.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/tiles/tile.h"

namespace valora::bench {

// Tiles whose sums fit into an instruction set's registers and use enough of them.
std::vector<kernels::CpuTile> candidate_tiles();

// Finds the candidate with the smallest geometric mean time over many shapes.
class TileSearch {
 public:
  explicit TileSearch(std::vector<kernels::CpuTile> candidates);
  const std::vector<kernels::CpuTile>& candidates() const { return candidates_; }
  // seconds: for one shape, per candidate.
  void add(const std::vector<double>& seconds);
  kernels::CpuTile best() const;
  // Geometric mean of best()'s time over the time of each shape's own best candidate: an upper
  // bound for the gain of adaptive tiling on these shapes. Slightly too high, because the minimum
  // of noisy times is biased.
  double most_to_win() const;

 private:
  size_t best_index() const;

  std::vector<kernels::CpuTile> candidates_;
  std::vector<double> log_sums_;
  double least_log_sum_ = 0;
  int shapes_ = 0;
};

}  // namespace valora::bench
