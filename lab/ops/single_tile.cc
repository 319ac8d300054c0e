#include "lab/ops/single_tile.h"

#include <algorithm>
#include <cmath>

namespace valora::bench {

std::vector<kernels::CpuTile> candidate_tiles() {
  constexpr int kFewestSums = 8, kMostSums = 24;
  std::vector<kernels::CpuTile> tiles;
  for (const uint8_t rows : {1, 2, 4, 6, 8, 12})
    for (const uint8_t panels : {1, 2, 4, 8})
      for (const uint8_t chains : {1, 2, 4, 8})
        if (const int sums = rows * panels * chains; sums >= kFewestSums && sums <= kMostSums)
          tiles.push_back({rows, panels, chains});
  return tiles;
}

TileSearch::TileSearch(std::vector<kernels::CpuTile> candidates)
    : candidates_(std::move(candidates)), log_sums_(candidates_.size()) {}

void TileSearch::add(const std::vector<double>& seconds) {
  for (size_t i = 0; i < log_sums_.size(); ++i) log_sums_[i] += std::log(seconds[i]);
  least_log_sum_ += std::log(*std::min_element(seconds.begin(), seconds.end()));
  ++shapes_;
}

size_t TileSearch::best_index() const {
  return static_cast<size_t>(std::min_element(log_sums_.begin(), log_sums_.end()) -
                             log_sums_.begin());
}

kernels::CpuTile TileSearch::best() const { return candidates_[best_index()]; }

double TileSearch::most_to_win() const {
  return shapes_ == 0 ? 1 : std::exp((log_sums_[best_index()] - least_log_sum_) / shapes_);
}

}  // namespace valora::bench
