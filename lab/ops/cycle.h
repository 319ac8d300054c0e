// Copies of an operand used in rotation, so that each use finds its data cold.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace valora::bench {

template <typename T>
class Cycle {
 public:
  explicit Cycle(std::vector<T> items) : items_(std::move(items)) {}
  const T& next() { return items_[at_++ % items_.size()]; }
  size_t size() const { return items_.size(); }

 private:
  std::vector<T> items_;
  size_t at_ = 0;
};

}  // namespace valora::bench
