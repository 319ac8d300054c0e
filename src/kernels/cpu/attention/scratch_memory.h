// Memory that a thread keeps between calls.
#pragma once

#include <cstdint>
#include <vector>

namespace valora::kernels {

template <typename V>
void reserve(std::vector<V>& memory, int64_t size) {
  if (std::ssize(memory) < size) memory.resize(static_cast<size_t>(size));
}

}  // namespace valora::kernels
