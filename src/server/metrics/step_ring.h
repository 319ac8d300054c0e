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
  static constexpr size_t kKept = 256;

  struct Step {
    uint64_t number = 0;  // 1 for the first
    double ended = 0;     // Unix time
    StepRecord record;
  };

  void add(const StepRecord& record) noexcept;
  // Those that are kept and came after the step of this number, oldest first.
  std::vector<Step> after(uint64_t number) const;

 private:
  mutable std::mutex mutex_;
  std::array<Step, kKept> steps_;
  uint64_t count_ = 0;
};

}  // namespace valora::server
