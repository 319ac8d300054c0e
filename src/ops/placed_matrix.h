// A matrix of an adapter that models read by rows or multiply with, in blocks of a memory pool
// (ops/panel_layout.h) or in memory of its own. In host memory.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/types/lora.h"
#include "ops/panel_layout.h"

namespace valora::ops {

class PlacedMatrix {
 public:
  // layout: of PanelLayout::of_matrix(). Not resident before place().
  explicit PlacedMatrix(PanelLayout layout);
  // values: [n, k], contiguous, in host memory. Always resident.
  explicit PlacedMatrix(at::Tensor values);
  PlacedMatrix(const PlacedMatrix&) = delete;
  PlacedMatrix& operator=(const PlacedMatrix&) = delete;

  // As those of AdapterWeights.
  void place(std::span<std::byte* const> blocks);
  void unplace();
  bool resident() const { return owned_.defined() || placed_; }

  int64_t rows() const { return n_; }
  int64_t columns() const { return k_; }
  at::ScalarType dtype() const { return dtype_; }
  WeightForm form() const { return form_; }
  // Null if it owns its values.
  const PanelLayout* layout() const { return owned_.defined() ? nullptr : &layout_; }
  // Undefined in a pool.
  const at::Tensor& owned() const { return owned_; }

  // Plain form: the address of a row of columns() values. It must be resident.
  const std::byte* row(int64_t index) const;
  // Panels: what kernels multiply with. It must be resident.
  kernels::LoraFactor factor() const;

 private:
  PanelLayout layout_;
  at::Tensor owned_;
  int64_t n_ = 0, k_ = 0;
  at::ScalarType dtype_ = at::kFloat;
  WeightForm form_ = WeightForm::kPlain;
  std::vector<const void*> pieces_;
  int64_t rows_per_piece_ = 0;
  size_t row_bytes_ = 0;
  bool placed_ = false;
};

}  // namespace valora::ops
