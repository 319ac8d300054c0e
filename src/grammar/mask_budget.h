// How much CPU time the masks of answers take: of a step, so that other answers go on, and of a
// request, so that it ends. In seconds; the callers measure (GrammarMatcher::cpu_seconds()).
#pragma once

#include <atomic>

#include "base/result.h"

namespace valora::grammar {

// The CPU time for the masks of one request, shared by its answers. It begins with `most` seconds.
// Each choice adds `token` seconds, up to `most`, and its mask's time is charged. Thread-safe.
class MaskAccount {
 public:
  struct Limits {
    double most = 1, token = 0.01;
  };
  explicit MaskAccount(Limits limits) : limits_(limits), left_(limits.most) {}

  // What the next choice may take. Of one that nothing is known about, more than most take, so
  // that others go first.
  static constexpr double kUnknown = 1e-3;

  // A choice took this.
  void charge(double seconds);
  double expected() const { return expected_; }
  // kInvalidArgument if less than nothing is left.
  Status check() const;

 private:
  const Limits limits_;
  std::atomic<double> left_, expected_ = kUnknown;
};

// The CPU time for the masks of one step. Thread-safe.
class StepMasks {
 public:
  explicit StepMasks(double limit) : limit_(limit) {}

  // True if the step may make one more choice. It may always make the first one.
  bool begin() { return begun_++ == 0 || spent_ < limit_; }
  void charge(double seconds) { spent_ += seconds; }

 private:
  const double limit_;
  std::atomic<int> begun_ = 0;
  std::atomic<double> spent_ = 0;
};

// The place of an answer among those of a step, the lowest first: cheap ones, but none waits for
// ever. waited: for how many steps it did.
inline double turn_of(const MaskAccount& account, int waited) {
  return account.expected() / (1 + waited);
}

}  // namespace valora::grammar
