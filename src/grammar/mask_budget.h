// Limits the CPU time spent on masks: per step, so that other answers make progress, and per
// request, so that it ends. In seconds; callers measure it (GrammarMatcher::cpu_seconds()).
#pragma once

#include <atomic>

#include "base/result.h"

namespace valora::grammar {

// CPU time for the masks of one request, shared by its answers. The balance starts at `most`
// seconds. Each choice adds `token` seconds, up to `most`, and pays for its mask. Thread-safe.
class MaskAccount {
 public:
  struct Limits {
    double most = 1, token = 0.01;
  };
  explicit MaskAccount(Limits limits) : limits_(limits), left_(limits.most) {}

  // Expected time of a choice about which nothing is known yet: more than most take, so that others
  // go first.
  static constexpr double kUnknown = 1e-3;

  // Charges the time that a choice took.
  void charge(double seconds);
  double expected() const { return expected_; }
  // kInvalidArgument if the balance is negative.
  Status check() const;

 private:
  const Limits limits_;
  std::atomic<double> left_, expected_ = kUnknown;
};

// CPU time for the masks of one step. Thread-safe.
class StepMasks {
 public:
  explicit StepMasks(double limit) : limit_(limit) {}

  // True if the step may make one more choice. The first one is always allowed.
  bool begin() { return begun_++ == 0 || spent_ < limit_; }
  void charge(double seconds) { spent_ += seconds; }

 private:
  const double limit_;
  std::atomic<int> begun_ = 0;
  std::atomic<double> spent_ = 0;
};

// Sort key of an answer within a step, lowest first: cheap ones go first, but none waits forever.
// waited: number of steps it has waited.
inline double turn_of(const MaskAccount& account, int waited) {
  return account.expected() / (1 + waited);
}

}  // namespace valora::grammar
