#include "ops/weights/panel_layout.h"

#include <algorithm>

#include "kernels/types/lora.h"
#include "ops/device/dispatch.h"
#include "ops/weights/panel_layout_targets.h"

namespace valora::ops {

// Places pieces by first fit in the blocks of one adapter.
class PanelLayout::BlockFiller {
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
  std::vector<PanelLayout::Piece> open_;  // free end of each block with room, ascending
};

namespace {

constexpr int64_t kLeastRun = 512;  // inputs per run of a cut panel; shorter runs are slow

void check_dtype(at::ScalarType dtype, WeightForm form) {
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kBFloat16 ||
                  (dtype == at::kHalf && form == WeightForm::kPlain),
              "panels of ", dtype, "; they are of float or bf16");
}

void check_shape(const LoraShape& s) {
  TORCH_CHECK(s.rank > 0 && s.in > 0 && s.out > 0, "an adapter of rank ", s.rank, " on [", s.out,
              ", ", s.in, "]");
}

size_t panel_bytes(int64_t k, at::ScalarType dtype, WeightForm form) {
  return form == WeightForm::kPanels
             ? panel_bytes_cpu(k, dtype)
             : static_cast<size_t>(kPlainPanelRows * k) * c10::elementSize(dtype);
}

int64_t panels_of(int64_t n, WeightForm form) {
  return form == WeightForm::kPanels ? panels_cpu(n) : (n + kPlainPanelRows - 1) / kPlainPanelRows;
}

// The bytes of the smallest panel: a block with less room counts as full.
size_t least_panel(std::span<const LoraShape> shapes, at::ScalarType dtype, WeightForm form) {
  size_t least = SIZE_MAX;
  for (const LoraShape& s : shapes)
    least = std::min(least, panel_bytes(std::min(s.rank, s.in), dtype, form));
  return least;
}

void check_tensor(const PanelLayout::Factor& f, const TensorView& t) {
  const bool floating = t.dtype == DType::kF32 || t.dtype == DType::kF16 || t.dtype == DType::kBF16;
  const at::IntArrayRef shape = t.shape;
  TORCH_CHECK(floating && shape.equals({f.n, f.k}) &&
                  t.bytes.size() == static_cast<size_t>(f.n * f.k) * dtype_size(t.dtype),
              dtype_name(t.dtype), " values of ", shape, " for panels of [", f.n, ", ", f.k, "]");
}

// Rounds up so that the next piece is also aligned.
size_t aligned(size_t bytes) {
  constexpr size_t kLine = 64;
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace

std::optional<WeightForm> paged_form(at::ScalarType dtype, at::Device device) {
  switch (target_of(dtype, device)) {
    case Target::kCpu: return WeightForm::kPanels;
    case Target::kCuda: return WeightForm::kPlain;
    case Target::kAten: break;
  }
  return std::nullopt;
}

size_t largest_panel_bytes(int64_t widest_input, int64_t max_rank, at::ScalarType dtype,
                           WeightForm form) {
  return panel_bytes(std::max(widest_input, max_rank), dtype, form);
}

size_t least_cut_block_bytes(at::ScalarType dtype) {
  return panel_bytes(kLeastRun, dtype, WeightForm::kPanels);
}

Result<PanelLayout> PanelLayout::make(std::span<const LoraShape> shapes, at::ScalarType dtype,
                                      size_t block_bytes, WeightForm form) {
  check_dtype(dtype, form);
  for (const LoraShape& s : shapes) check_shape(s);
  PanelLayout layout;
  layout.dtype_ = dtype;
  layout.form_ = form;
  layout.block_bytes_ = block_bytes;
  BlockFiller filler(block_bytes, least_panel(shapes, dtype, form));
  const auto add = [&](int64_t n, int64_t k) { return layout.add(n, k, filler); };
  for (const LoraShape& s : shapes) {
    const bool cuts = form == WeightForm::kPanels && block_bytes >= least_cut_block_bytes(dtype);
    const size_t largest = largest_panel_bytes(cuts ? 1 : s.in, s.rank, dtype, form);
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

PanelLayout::Factor PanelLayout::add(int64_t n, int64_t k, BlockFiller& filler) {
  const size_t panel = panel_bytes(k, dtype_, form_);
  const int64_t panels = panels_of(n, form_);
  Factor f{n, k, std::min(panels, static_cast<int64_t>(block_bytes_ / panel)), 0, pieces_.size(),
           0};
  if (panel > block_bytes_) return add_cut(f, filler);
  for (int64_t p = 0; p < panels; p += f.panels_per_piece, ++f.piece_count) {
    const int64_t count = std::min(f.panels_per_piece, panels - p);
    const size_t bytes = aligned(static_cast<size_t>(count) * panel);
    pieces_.push_back(filler.take(bytes));
    bytes_ += bytes;
  }
  return f;
}

// Cuts panels into as few runs as possible, of roughly equal numbers of inputs.
PanelLayout::Factor PanelLayout::add_cut(Factor f, BlockFiller& filler) {
  const size_t unit = panel_bytes(kernels::kCutInputs, dtype_, form_);
  const auto most = static_cast<int64_t>(block_bytes_ / unit),
             units = (f.k + kernels::kCutInputs - 1) / kernels::kCutInputs,
             runs = (units + most - 1) / most;
  f.panels_per_piece = 1;
  f.inputs_per_piece = (units + runs - 1) / runs * kernels::kCutInputs;
  for (int64_t first = 0; first < f.k; first += f.inputs_per_piece) {
    const size_t bytes =
        aligned(panel_bytes(std::min(f.inputs_per_piece, f.k - first), dtype_, form_));
    for (int64_t p = 0; p < panels_of(f.n, form_); ++p, ++f.piece_count) {
      pieces_.push_back(filler.take(bytes));
      bytes_ += bytes;
    }
  }
  return f;
}

Result<PanelLayout> PanelLayout::of_matrix(int64_t n, int64_t k, at::ScalarType dtype,
                                           size_t block_bytes, WeightForm form) {
  check_dtype(dtype, form);
  TORCH_CHECK(n > 0 && k > 0, "a matrix of [", n, ", ", k, "]");
  const size_t panel = panel_bytes(k, dtype, form);
  if (panel > block_bytes)
    return unprocessable("a panel of " + std::to_string(k) + " inputs takes " +
                         std::to_string(panel) + " bytes, a block of the memory pool has " +
                         std::to_string(block_bytes));
  PanelLayout layout;
  layout.dtype_ = dtype;
  layout.form_ = form;
  layout.block_bytes_ = block_bytes;
  BlockFiller filler(block_bytes, panel);
  layout.matrix_ = layout.add(n, k, filler);
  layout.blocks_ = filler.blocks();
  return layout;
}

void PanelLayout::write_rows(int64_t first, const TensorView& rows,
                             std::span<std::byte* const> blocks) const {
  const int64_t count = rows.shape.empty() ? 0 : rows.shape[0];
  TORCH_CHECK(blocks.size() == static_cast<size_t>(blocks_) && first >= 0 &&
                  first % kPlainPanelRows == 0 && first + count <= matrix_.n &&
                  (count % kPlainPanelRows == 0 || first + count == matrix_.n),
              count, " rows from ", first, " on of a matrix of ", matrix_.n, " into ",
              blocks.size(), " blocks instead of ", blocks_);
  check_tensor({count, matrix_.k, 0, 0, 0}, rows);
  const auto write = form_ == WeightForm::kPanels ? write_panels_cpu : write_panels_plain;
  write(*this, matrix_, rows, first, blocks);
}

void PanelLayout::write(size_t index, const TensorView& a, const TensorView& b,
                        std::span<std::byte* const> blocks) const {
  TORCH_CHECK(index < modules_.size() && blocks.size() == static_cast<size_t>(blocks_), "module ",
              index, " of ", modules_.size(), " into ", blocks.size(), " blocks instead of ",
              blocks_);
  const Module& m = modules_[index];
  check_tensor(m.a, a);
  check_tensor(m.b, b);
  const auto write_factor = form_ == WeightForm::kPanels ? write_panels_cpu : write_panels_plain;
  write_factor(*this, m.a, a, 0, blocks);
  write_factor(*this, m.b, b, 0, blocks);
}

}  // namespace valora::ops
