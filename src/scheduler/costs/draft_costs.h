// Measured costs of draft rows, because the estimate of a step's time is too coarse: on CPUs a few
// rows are nearly free next to reading the weights, and further ones are not.
#pragma once

#include <algorithm>

namespace valora::scheduler {

class DraftCosts {
 public:
  // A decode-only step took `seconds`. expected: the estimate for the same step without its drafts.
  void observe(double expected, int drafts, double seconds) {
    if (expected <= 0 || seconds <= 0) return;
    if (drafts == 0) {
      plain_ += kNewest * (std::clamp(seconds / expected, 1 / kMost, kMost) - plain_);
      return;
    }
    const double row = std::max(0.0, seconds - plain_seconds(expected)) / drafts;
    row_ = observed_ == 0 ? row : row_ + kNewest * (std::min(row, seconds) - row_);
    ++observed_;
  }

  // The seconds of a step without drafts whose estimate is `expected`.
  double plain_seconds(double expected) const { return expected * plain_; }
  // The seconds of a draft row; `expected` until some were measured.
  double row_seconds(double expected) const { return observed_ < kFirst ? expected : row_; }

 private:
  static constexpr double kNewest = 0.1, kMost = 16;
  static constexpr int kFirst = 4;

  double plain_ = 1;
  double row_ = 0;
  int observed_ = 0;
};

}  // namespace valora::scheduler
