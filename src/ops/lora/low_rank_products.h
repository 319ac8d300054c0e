// A replacement for our low-rank products, so that the same engine can be compared with itself
// running the operators of other systems (lab/ops/system_products.h). CPUs only.
#pragma once

#include <ATen/ATen.h>

#include "ops/lora/lora.h"

namespace valora::ops {

class LowRankProducts {
 public:
  virtual ~LowRankProducts() = default;
  // For every segment: y += coefficient · scale · (x Aᵀ) Bᵀ with the factors of this module. x: [T,
  // in], contiguous, in the model's dtype; y: float [T, out], contiguous. May be called from any
  // thread.
  virtual void add(const at::Tensor& x, const LoraBatch& lora, int module, const at::Tensor& y) = 0;
};

// Null, the default: the kernels' own, computed in the launch of the dense product. Otherwise the
// dense products run first and these are added. Takes effect with the next projection; the object
// must outlive the last projection that uses it.
void set_low_rank_products(LowRankProducts* products);

}  // namespace valora::ops
