// What a tile is chosen for: one product of an operation on one kind of machine.
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
  bool float32 = false;  // else bf16 (on GPUs: or fp16, whose tiles are the same)
  Processor processor;
  int64_t m = 0;  // tokens
  int64_t n = 0;  // outputs
  int64_t k = 0;  // inputs

  friend bool operator==(const ProductShape&, const ProductShape&) = default;
};

}  // namespace valora::kernels
