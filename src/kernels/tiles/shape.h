// The shape of a product that a tile is chosen for.
#pragma once

#include <cstdint>

#include "kernels/types/processor.h"

namespace valora::kernels {

enum class ProductKind : uint8_t {
  kDense,   // n = a linear's outputs, k = its inputs
  kShrink,  // n = rank, k = inputs
  kExpand,  // n = outputs, k = rank
};

struct ProductShape {
  ProductKind kind = ProductKind::kDense;
  bool float32 = false;  // false: bf16, or on GPUs fp16 with the same tiles
  Processor processor;
  int64_t m = 0;  // tokens
  int64_t n = 0;  // outputs
  int64_t k = 0;  // inputs

  friend bool operator==(const ProductShape&, const ProductShape&) = default;
};

}  // namespace valora::kernels
