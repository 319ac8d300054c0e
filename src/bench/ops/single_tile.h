// The best one tile for all low-rank products: what a library compiled with one tile could reach at
// most.
#pragma once

#include <vector>

#include "kernels/tiles/tile.h"

namespace valora::bench {

// Tiles whose sums fit in the registers of some instruction set, and keep enough of them busy.
std::vector<kernels::CpuTile> candidate_tiles();

// Of several candidates timed at many shapes, the one whose times have the least geometric mean.
class TileSearch {
 public:
  explicit TileSearch(std::vector<kernels::CpuTile> candidates);
  const std::vector<kernels::CpuTile>& candidates() const { return candidates_; }
  // One shape's seconds, of each candidate.
  void add(const std::vector<double>& seconds);
  kernels::CpuTile best() const;
  // best()'s time over that of each shape's own best candidate, geometric mean: what any choice of
  // tiles can win on these shapes, and a little more, as the least of noisy times is partly luck.
  double most_to_win() const;

 private:
  size_t best_index() const;

  std::vector<kernels::CpuTile> candidates_;
  std::vector<double> log_sums_;
  double least_log_sum_ = 0;
  int shapes_ = 0;
};

}  // namespace valora::bench
