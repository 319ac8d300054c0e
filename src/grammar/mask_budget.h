// Limits the CPU time spent on masks: per step, so that other answers make progress, and per
// request, so that it ends; and the memory of a request's matchers. In seconds and bytes, which
// callers measure (GrammarMatcher::cpu_seconds(), GrammarMatcher::bytes()).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/result.h"

namespace valora::grammar {

// CPU time for the masks of one step. Thread-safe.
class StepMasks {
 public:
  explicit StepMasks(double limit) : limit_(limit) {}

  // True if the step may make one more choice. The first one is always allowed.
  bool begin() { return begun_++ == 0 || spent_ < limit_; }
  void charge(double seconds) { spent_ += seconds; }
  uint64_t number() const { return number_; }  // differs from that of every other step

 private:
  const double limit_;
  const uint64_t number_ = ++last_;
  std::atomic<int> begun_ = 0;
  std::atomic<double> spent_ = 0;
  inline static std::atomic<uint64_t> last_ = 0;
};

// CPU time and memory for the masks of one request: of all its prompts and choices together. The
// balance starts at `most` seconds. Each choice pays for its mask; the first one in a step adds
// `token` seconds, further ones `further`, up to `most`. So n choices do not have n times the time
// of one:
//   time of all masks <= most + token * steps + further * other choices + one mask.
// Thread-safe.
class MaskAccount {
 public:
  struct Limits {
    double most = 1, token = 0.01, further = 0.0025;
    int64_t bytes = int64_t{512} << 20;
  };
  explicit MaskAccount(Limits limits) : limits_(limits), left_(limits.most) {}

  // Expected time of a choice about which nothing is known yet: more than most take, so that others
  // go first.
  static constexpr double kUnknown = 1e-3;

  // Charges the time that a choice of this step took.
  void charge(const StepMasks& step, double seconds);
  // Counts memory that a matcher has taken, or, if negative, given back.
  void hold(int64_t bytes) { held_ += bytes; }
  double expected() const { return expected_; }
  // kInvalidArgument if the balance is negative, or the memory over its limit.
  Status check() const;

 private:
  const Limits limits_;
  mutable std::mutex mutex_;  // guards left_ and step_
  double left_;
  uint64_t step_ = 0;  // the last one with a choice
  std::atomic<int64_t> held_ = 0;
  std::atomic<double> expected_ = kUnknown;
};

// Sort key of an answer within a step, lowest first: cheap ones go first, but none waits forever.
// waited: number of steps it has waited.
inline double turn_of(const MaskAccount& account, int waited) {
  return account.expected() / (1 + waited);
}

}  // namespace valora::grammar
