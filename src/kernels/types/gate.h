// The activation of a gated product: activation(gate) · up.
#pragma once

#include <cstdint>

namespace valora::kernels {

enum class Gate : uint8_t {
  kSilu,      // x · sigmoid(x)
  kGeluTanh,  // x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))
};

}  // namespace valora::kernels
