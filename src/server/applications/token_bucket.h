// A limit on the rate of events that allows short bursts.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace valora::server {

// Not thread-safe.
class TokenBucket {
 public:
  // `rate` tokens per second, above 0. It holds max(1, rate) tokens, and has them at first.
  TokenBucket(double rate, TimePoint now)
      : rate_(rate), size_(std::max(1.0, rate)), tokens_(size_), updated_(now) {}

  // Takes a token and returns 0; without one, returns the seconds until there is one.
  double take(TimePoint now) {
    tokens_ = std::min(size_, tokens_ + rate_ * seconds(now - updated_));
    updated_ = now;
    if (tokens_ < kOne) return (1 - tokens_) / rate_;
    tokens_ = std::max(0.0, tokens_ - 1);
    return 0;
  }

 private:
  // Sums of parts of a token are not exact.
  static constexpr double kOne = 1 - 1e-9;

  const double rate_, size_;
  double tokens_;
  TimePoint updated_;
};

}  // namespace valora::server
