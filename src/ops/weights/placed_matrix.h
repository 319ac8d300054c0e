// A matrix of an adapter from which models read rows or with which they multiply. It is in blocks
// of a memory pool (ops/weights/panel_layout.h) or owns its memory.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/types/lora.h"
#include "ops/weights/panel_layout.h"

namespace valora::ops {

struct DeviceMatrix;  // ops/vocabulary/vocabulary_cuda.cc

class PlacedMatrix {
 public:
  // layout: made by PanelLayout::of_matrix(). Not resident before place().
  explicit PlacedMatrix(PanelLayout layout);
  // values: [n, k], contiguous. Always resident.
  explicit PlacedMatrix(at::Tensor values);
  PlacedMatrix(const PlacedMatrix&) = delete;
  PlacedMatrix& operator=(const PlacedMatrix&) = delete;

  // See AdapterWeights.
  void place(std::span<std::byte* const> blocks);
  void unplace();
  bool resident() const { return owned_.defined() || placed_; }

  int64_t rows() const { return n_; }
  int64_t columns() const { return k_; }
  at::ScalarType dtype() const { return dtype_; }
  WeightForm form() const { return form_; }
  // Null if the matrix owns its values.
  const PanelLayout* layout() const { return owned_.defined() ? nullptr : &layout_; }
  // Undefined if the matrix is in a pool.
  const at::Tensor& owned() const { return owned_; }

  // Plain form: the address of a row of columns() values. The matrix must be resident.
  const std::byte* row(int64_t index) const;
  // Plain form: the addresses of its pieces, of rows_per_piece() rows but for the last one. The
  // matrix must be resident.
  std::span<const void* const> pieces() const;
  int64_t rows_per_piece() const { return rows_per_piece_; }
  // Panels: the factor for kernels. The matrix must be resident.
  kernels::LoraFactor factor() const;
  // The table read by GPU kernels, which build it on first use.
  std::shared_ptr<const DeviceMatrix>& on_device() const { return on_device_; }

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
  mutable std::shared_ptr<const DeviceMatrix> on_device_;
};

}  // namespace valora::ops
