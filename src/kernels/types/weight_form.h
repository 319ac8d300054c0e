// How the values of a weight, or of the KV cache, lie in memory.
#pragma once

#include <cstdint>

namespace valora::kernels {

enum class WeightForm : uint8_t {
  kPlain,   // row-major: [out, in]
  kPanels,  // what the CPU kernels read (cpu/product/panels.h)
};

}  // namespace valora::kernels
