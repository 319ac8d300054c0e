// A rate limit that allows short bursts.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace valora::server {

// Not thread-safe.
class TokenBucket {
 public:
  // Refills at `rate` tokens per second (above 0) up to max(1, rate), and starts full.
  TokenBucket(double rate, TimePoint now)
      : rate_(rate), size_(std::max(1.0, rate)), tokens_(size_), updated_(now) {}

  // Takes a token and returns 0. If none is left, returns the seconds until the next one.
  double take(TimePoint now) {
    tokens_ = std::min(size_, tokens_ + rate_ * seconds(now - updated_));
    updated_ = now;
    if (tokens_ < kOne) return (1 - tokens_) / rate_;
    tokens_ = std::max(0.0, tokens_ - 1);
    return 0;
  }

 private:
  // Tolerates rounding errors in sums of fractional tokens.
  static constexpr double kOne = 1 - 1e-9;

  const double rate_, size_;
  double tokens_;
  TimePoint updated_;
};

}  // namespace valora::server
