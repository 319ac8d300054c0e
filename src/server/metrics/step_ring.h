// The most recent engine steps.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "api/stats.h"

namespace valora::server {

// Thread-safe.
class StepRing {
 public:
  static constexpr size_t kKept = 4096;

  struct Step {
    uint64_t number = 0;  // 1 for the first step
    double ended = 0;     // Unix time
    StepRecord record;
    double began = 0;
    int steps = 1;  // steps joined into this entry, named after the last; see joined()
  };

  void add(const StepRecord& record) noexcept;
  // The steps still kept that came after step `number`, oldest first.
  std::vector<Step> after(uint64_t number) const;
  uint64_t count() const;

 private:
  mutable std::mutex mutex_;
  std::array<Step, kKept> steps_;
  uint64_t count_ = 0;
};

// Joins consecutive steps so that at most `most` remain, but never over a pause of more than kPause
// seconds, which would show an idle engine as busy: with pauses, the last 2 * most entries are
// returned. A joined step has the sums of tokens and seconds, the maxima of sequences and adapters,
// and the mode that took most of the time.
inline constexpr double kPause = 0.1;
std::vector<StepRing::Step> joined(const std::vector<StepRing::Step>& steps, size_t most);

}  // namespace valora::server
