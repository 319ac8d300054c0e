// Runs of rows that attend to each other: the images, frames and windows of vision towers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/types/spans.h"

namespace valora::kernels {

// Run i consists of rows [ends[i-1], ends[i]), where ends[-1] = 0, and is packed into blocks of its
// own.
class Runs {
 public:
  explicit Runs(std::vector<int64_t> ends) : ends_(std::move(ends)), first_blocks_{0} {
    for (int64_t run = 0; run < count(); ++run)
      first_blocks_.push_back(first_blocks_.back() +
                              (length(run) + kBlockTokens - 1) / kBlockTokens);
  }

  int64_t count() const { return static_cast<int64_t>(ends_.size()); }
  int64_t rows() const { return ends_.empty() ? 0 : ends_.back(); }
  int64_t begin(int64_t run) const { return run == 0 ? 0 : ends_[run - 1]; }
  int64_t end(int64_t run) const { return ends_[run]; }
  int64_t length(int64_t run) const { return end(run) - begin(run); }
  // The first run that ends after `row`.
  int64_t run_of(int64_t row) const { return std::ranges::upper_bound(ends_, row) - ends_.begin(); }
  // Blocks of kBlockTokens rows.
  int64_t blocks(int64_t run) const { return first_blocks_[run + 1] - first_blocks_[run]; }
  int64_t first_block(int64_t run) const { return first_blocks_[run]; }
  int64_t blocks() const { return first_blocks_.back(); }

 private:
  std::vector<int64_t> ends_, first_blocks_;
};

}  // namespace valora::kernels
