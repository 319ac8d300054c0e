#include <algorithm>
#include <cstring>

#include "ops/weights/panel_layout_targets.h"
#include "ops/weights/tensor_rows.h"

namespace valora::ops {
namespace {

template <typename T>
void write_rows(const PanelLayout& layout, const PanelLayout::Factor& f, const TensorView& tensor,
                int64_t first, std::span<std::byte* const> blocks) {
  TensorRows<T> rows(tensor, f.k);
  const auto pieces = layout.pieces(f);
  const int64_t per_piece = f.panels_per_piece * kPlainPanelRows;
  const int64_t end = first + tensor.shape[0];
  for (int64_t row = first, count; row < end; row += count) {
    // One panel at a time, to limit the memory for converted values.
    count = std::min(kPlainPanelRows, end - row);
    const PanelLayout::Piece& piece = pieces[row / per_piece];
    std::memcpy(
        blocks[piece.block] + piece.offset + static_cast<size_t>(row % per_piece * f.k) * sizeof(T),
        rows.read(row - first, count), static_cast<size_t>(count * f.k) * sizeof(T));
  }
}

}  // namespace

void write_panels_plain(const PanelLayout& layout, const PanelLayout::Factor& f,
                        const TensorView& tensor, int64_t first,
                        std::span<std::byte* const> blocks) {
  switch (layout.dtype()) {
    case at::kFloat: write_rows<float>(layout, f, tensor, first, blocks); break;
    case at::kHalf: write_rows<c10::Half>(layout, f, tensor, first, blocks); break;
    default: write_rows<kernels::bf16>(layout, f, tensor, first, blocks); break;
  }
}

}  // namespace valora::ops
