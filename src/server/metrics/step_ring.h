// The last steps of the engine.
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
    uint64_t number = 0;  // 1 for the first
    double ended = 0;     // Unix time
    StepRecord record;
    double began = 0;
    int steps = 1;  // that it stands for, see joined(): this is then the last of them
  };

  void add(const StepRecord& record) noexcept;
  // Those that are kept and came after the step of this number, oldest first.
  std::vector<Step> after(uint64_t number) const;
  uint64_t count() const;

 private:
  mutable std::mutex mutex_;
  std::array<Step, kKept> steps_;
  uint64_t count_ = 0;
};

// At most so many steps: where there are more, each stands for several that follow each other, with
// the sums of their tokens and seconds, the most of their sequences and adapters, and the mode that
// most of their time was spent in. Where there is room, none stands for steps on both sides of a
// pause of kPause seconds: at most twice as many are given then.
inline constexpr double kPause = 0.1;
std::vector<StepRing::Step> joined(const std::vector<StepRing::Step>& steps, size_t most);

}  // namespace valora::server
