#include "ops/panel_layout.h"

#include <algorithm>

#include "ops/panel_layout_targets.h"

namespace valora::ops {
namespace {

void check_shape(const LoraShape& s, at::ScalarType dtype) {
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kBFloat16, "panels of ", dtype,
              "; they are of float or bf16");
  TORCH_CHECK(s.rank > 0 && s.in > 0 && s.out > 0, "an adapter of rank ", s.rank, " on [", s.out,
              ", ", s.in, "]");
}

// First fit over the blocks of one adapter.
class BlockFiller {
 public:
  BlockFiller(size_t block_bytes, size_t least_piece)
      : block_bytes_(block_bytes), least_piece_(least_piece) {}

  PanelLayout::Piece take(size_t bytes) {
    size_t i = 0;
    while (i < open_.size() && block_bytes_ - open_[i].offset < bytes) ++i;
    if (i == open_.size()) open_.push_back({blocks_++, 0});
    const PanelLayout::Piece piece = open_[i];
    open_[i].offset += bytes;
    if (block_bytes_ - open_[i].offset < least_piece_)
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
    return piece;
  }
  int32_t blocks() const { return blocks_; }

 private:
  size_t block_bytes_, least_piece_;
  int32_t blocks_ = 0;
  std::vector<PanelLayout::Piece> open_;  // the free end of each block with room, ascending
};

// The bytes of the smallest panel: a block with less room is full.
size_t least_panel(std::span<const LoraShape> shapes, at::ScalarType dtype) {
  size_t least = SIZE_MAX;
  for (const LoraShape& s : shapes)
    least = std::min(least, panel_bytes_cpu(std::min(s.rank, s.in), dtype));
  return least;
}

}  // namespace

size_t largest_panel_bytes(int64_t widest_input, int64_t max_rank, at::ScalarType dtype) {
  return panel_bytes_cpu(std::max(widest_input, max_rank), dtype);
}

Result<PanelLayout> PanelLayout::make(std::span<const LoraShape> shapes, at::ScalarType dtype,
                                      size_t block_bytes) {
  for (const LoraShape& s : shapes) check_shape(s, dtype);
  PanelLayout layout;
  layout.dtype_ = dtype;
  layout.block_bytes_ = block_bytes;
  BlockFiller filler(block_bytes, least_panel(shapes, dtype));
  const auto add = [&](int64_t n, int64_t k) {
    const size_t panel = panel_bytes_cpu(k, dtype);
    const int64_t panels = panels_cpu(n);
    Factor f{n, k, std::min(panels, static_cast<int64_t>(block_bytes / panel)),
             layout.pieces_.size(), 0};
    for (int64_t p = 0; p < panels; p += f.panels_per_piece, ++f.piece_count)
      layout.pieces_.push_back(
          filler.take(static_cast<size_t>(std::min(f.panels_per_piece, panels - p)) * panel));
    layout.bytes_ += static_cast<size_t>(panels) * panel;
    return f;
  };
  for (const LoraShape& s : shapes) {
    const size_t largest = largest_panel_bytes(s.in, s.rank, dtype);
    if (largest > block_bytes)
      return unprocessable("a panel of rank " + std::to_string(s.rank) + " on " +
                           std::to_string(s.in) + " inputs takes " + std::to_string(largest) +
                           " bytes, a block of the memory pool has " + std::to_string(block_bytes));
    const Factor a = add(s.rank, s.in), b = add(s.out, s.rank);
    layout.modules_.push_back({s, a, b});
  }
  layout.blocks_ = filler.blocks();
  return layout;
}

}  // namespace valora::ops
