// The low-rank products of adapters in another implementation than this one's, so that one engine
// can be compared with itself under the operators of other systems (bench/ops/system_products.h).
// On CPUs only.
#pragma once

#include <ATen/ATen.h>

#include "ops/lora.h"

namespace valora::ops {

class LowRankProducts {
 public:
  virtual ~LowRankProducts() = default;
  // y += coefficient · scale · (x Aᵀ) Bᵀ for this module of every segment. x: [T, in], contiguous,
  // in the dtype of the model; y: float [T, out], contiguous. Any thread.
  virtual void add(const at::Tensor& x, const LoraBatch& lora, int module, const at::Tensor& y) = 0;
};

// Null, as at the start: the kernels' own, within the launch of the dense product. Otherwise the
// dense products run first, and these are added. Takes effect with the next projection; the object
// must outlive the last one.
void set_low_rank_products(LowRankProducts* products);

}  // namespace valora::ops
