#include "ops/weights/placed_matrix.h"

namespace valora::ops {

PlacedMatrix::PlacedMatrix(PanelLayout layout)
    : layout_(std::move(layout)),
      n_(layout_.matrix().n),
      k_(layout_.matrix().k),
      dtype_(layout_.dtype()),
      form_(layout_.form()),
      pieces_(layout_.matrix().piece_count),
      rows_per_piece_(layout_.matrix().panels_per_piece * kPlainPanelRows),
      row_bytes_(static_cast<size_t>(k_) * c10::elementSize(dtype_)) {
  TORCH_CHECK(n_ > 0, "a matrix without a layout");
}

PlacedMatrix::PlacedMatrix(at::Tensor values)
    : owned_(std::move(values)),
      n_(owned_.size(0)),
      k_(owned_.size(1)),
      dtype_(owned_.scalar_type()),
      pieces_{owned_.const_data_ptr()},
      rows_per_piece_(n_),
      row_bytes_(static_cast<size_t>(k_) * c10::elementSize(dtype_)) {
  TORCH_CHECK(owned_.dim() == 2 && owned_.is_contiguous(), "a matrix of ", owned_.sizes(),
              " that is not contiguous");
}

void PlacedMatrix::place(std::span<std::byte* const> blocks) {
  TORCH_CHECK(layout() && blocks.size() == static_cast<size_t>(layout_.blocks()),
              "a matrix placed in ", blocks.size(), " blocks");
  const auto pieces = layout_.pieces(layout_.matrix());
  for (size_t i = 0; i < pieces.size(); ++i)
    pieces_[i] = blocks[pieces[i].block] + pieces[i].offset;
  placed_ = true;
  on_device_ = nullptr;
}

void PlacedMatrix::unplace() {
  TORCH_CHECK(layout(), "a matrix that owns its values cannot be unplaced");
  placed_ = false;
  on_device_ = nullptr;
}

const std::byte* PlacedMatrix::row(int64_t index) const {
  TORCH_CHECK(resident() && form_ == WeightForm::kPlain && index >= 0 && index < n_, "row ", index,
              " of a matrix of ", n_, " rows is out of range, in panels or not resident");
  return static_cast<const std::byte*>(pieces_[index / rows_per_piece_]) +
         static_cast<size_t>(index % rows_per_piece_) * row_bytes_;
}

std::span<const void* const> PlacedMatrix::pieces() const {
  TORCH_CHECK(resident() && form_ == WeightForm::kPlain, "the matrix is in panels or not resident");
  return pieces_;
}

kernels::LoraFactor PlacedMatrix::factor() const {
  TORCH_CHECK(resident() && form_ == WeightForm::kPanels,
              "the matrix is not in panels or not resident");
  return {nullptr, pieces_.data(), layout_.matrix().panels_per_piece};
}

}  // namespace valora::ops
