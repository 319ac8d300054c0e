// Work stealing among the threads of one parallel launch. Each thread runs its own share from front
// to back, then takes items that others have not started, so that a preempted thread does not delay
// the launch.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace valora::kernels {

class WorkQueue {
 public:
  explicit WorkQueue(int64_t count) : count_(count), taken_(new std::atomic<bool>[count] {}) {}

  int64_t count() const { return count_; }
  // Runs body(i) for the items in [begin, end) first, then for all other items not taken yet. Each
  // item runs once. Thread-safe.
  template <typename Body>
  void work(int64_t begin, int64_t end, const Body& body) {
    for (int64_t i = begin; i < end; ++i)
      if (take(i)) body(i);
    for (int64_t i = begin - 1; i >= 0; --i)
      if (take(i)) body(i);
    for (int64_t i = count_ - 1; i >= end; --i)
      if (take(i)) body(i);
  }

 private:
  bool take(int64_t i) {
    return !taken_[i].load(std::memory_order_relaxed) &&
           !taken_[i].exchange(true, std::memory_order_relaxed);
  }

  int64_t count_;
  std::unique_ptr<std::atomic<bool>[]> taken_;
};

}  // namespace valora::kernels
