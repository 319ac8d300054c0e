// Weights in panels (kernels/cpu/product/panels.h, integer_panels.h).
#pragma once

#include <memory>
#include <utility>

#include "kernels/cpu/product/integer_panels.h"
#include "kernels/cpu/product/panels.h"
#include "ops/device/cpu_types.h"
#include "ops/weights/weight.h"

namespace valora::ops {

// The layout of an integer weight, with the address of its bytes.
struct IntegerWeight {
  kernels::IntegerPanels panels;
};

// → the bytes on huge pages, one-dimensional, and their layout. Throws c10::Error for groups that
// the layout does not support.
std::pair<at::Tensor, std::shared_ptr<const IntegerWeight>> pack_integers_cpu(
    const QuantisedTensor& w, bool byte_inputs);
// The same weight for products that round their inputs as a checkpoint specifies; null for a grid
// that the kernels do not support.
std::shared_ptr<const IntegerWeight> rounding_rows_cpu(const IntegerWeight& w,
                                                       const InputRounding& rounding);
// Elements of the panels of an [out, in] weight as floats of the dtype.
int64_t panel_elements_cpu(int64_t out, int64_t in, at::ScalarType dtype);

// w: [out, in], contiguous float or bf16 → its panels, zero-padded, on huge pages.
at::Tensor pack_cpu(const at::Tensor& w);
// Packs into existing panels.
void pack_cpu(const at::Tensor& w, const at::Tensor& panels);
// → [out, in] in w's dtype; integers: decoded to float
at::Tensor unpack_cpu(const Weight& w);

// For integer weights, only the sizes.
template <typename T>
kernels::Panels<T> panels_of(const Weight& w) {
  return {w.quantised() ? nullptr : raw<T>(w.data()), w.out(), w.in(), nullptr, 0};
}

// Null for floats.
inline const kernels::IntegerPanels* integers_of(const Weight& w) {
  return w.integers() ? &w.integers()->panels : nullptr;
}

}  // namespace valora::ops
