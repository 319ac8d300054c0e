// Weights in panels (kernels/cpu/product/panels.h).
#pragma once

#include "kernels/cpu/product/panels.h"
#include "ops/cpu_types.h"
#include "ops/weight.h"

namespace valora::ops {

// w: [out, in], contiguous float or bf16 → its panels, zero-padded, on huge pages.
at::Tensor pack_cpu(const at::Tensor& w);
// Packs into existing panels.
void pack_cpu(const at::Tensor& w, const at::Tensor& panels);
// → [out, in]
at::Tensor unpack_cpu(const Weight& w);

template <typename T>
kernels::Panels<T> panels_of(const Weight& w) {
  return {raw<T>(w.data()), w.out(), w.in(), nullptr, 0};
}

}  // namespace valora::ops
