// The ways in which layers compute and store values, for the kernels of all devices.
#pragma once

#include <cmath>
#include <cstdint>

namespace valora::kernels {

// The activation of a gated product: activation(gate) · up.
enum class Gate : uint8_t {
  kSilu,      // x · sigmoid(x)
  kGeluTanh,  // x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))
};

// How a decoder layer attends.
struct AttentionRule {
  // The number of positions a query attends to, the most recent ones including its own; 0: all up
  // to its own. Later positions in its joint range are always visible.
  int64_t window = 0;
  double scale = 0;  // factor on all scores; 0: 1/sqrt(dim)

  double scale_of(int64_t dim) const {
    return scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(dim));
  }
};

// How the KV cache stores values. kPlain: in the data type of the activations. The others: in 8
// bits, with one bf16 scale for the key and one for the value of each token and head.
//
//   kInt8  x ≈ q · scale, q = -127 … 127, scale = the largest magnitude / 127
//   kFp8   x ≈ q / 256 · scale, q the numbers of e4m3 without its NaN, scale = the largest
//          magnitude / 1.75: the largest number of e4m3 is 448
enum class KvFormat : uint8_t { kPlain, kInt8, kFp8 };

constexpr bool in_bytes(KvFormat format) { return format != KvFormat::kPlain; }

// The memory layout of a weight or of the KV cache.
enum class WeightForm : uint8_t {
  kPlain,   // weights: [out, in] row-major
  kPanels,  // the layout of the CPU kernels (cpu/product/panels.h)
};

}  // namespace valora::kernels
