// The slope of a line through a stream of points; older points count less.
#pragma once

#include <cstdint>

namespace valora::memory {

class RunningSlope {
 public:
  // slope: assumed until the points show otherwise. weight: the variance of x at which the points
  // count as much as that assumption.
  RunningSlope(double slope, double weight) : assumed_(slope), weight_(weight) {}

  void add(double x, double y) {
    constexpr double kNewest = 0.02;
    const double dx = x - x_, dy = y - y_;
    const double part = points_++ == 0 ? 1 : kNewest;
    x_ += part * dx;
    y_ += part * dy;
    xx_ = (1 - part) * (xx_ + part * dx * dx);
    xy_ = (1 - part) * (xy_ + part * dx * dy);
    if (xx_ > weight_) assumed_ = slope();  // kept while x does not vary
  }
  // Never negative.
  double slope() const {
    const double slope = (xy_ + weight_ * assumed_) / (xx_ + weight_);
    return slope > 0 ? slope : 0;
  }

 private:
  double assumed_, weight_;
  double x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;  // means, variance, covariance
  int64_t points_ = 0;
};

}  // namespace valora::memory
