// The memory layout of a weight or of the KV cache.
#pragma once

#include <cstdint>

namespace valora::kernels {

enum class WeightForm : uint8_t {
  kPlain,   // weights: [out, in] row-major
  kPanels,  // the layout of the CPU kernels (cpu/product/panels.h)
};

}  // namespace valora::kernels
