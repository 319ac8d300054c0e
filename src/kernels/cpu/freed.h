// Owns memory from std::aligned_alloc().
#pragma once

#include <cstdlib>

namespace valora::kernels {

// A deleter for std::unique_ptr.
struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};

}  // namespace valora::kernels
