#include "ops/panel_layout.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/product/panels.h"
#include "ops/cpu_types.h"

namespace valora::ops {
namespace {

using kernels::bf16;
using kernels::kPanelOutputs;
using kernels::panels_of;

size_t panel_bytes(int64_t k, at::ScalarType dtype) {
  return with_cpu_type(dtype, [&](auto t) {
    return static_cast<size_t>(kernels::panel_elements<decltype(t)>(k)) * sizeof(t);
  });
}

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
    least = std::min(least, panel_bytes(std::min(s.rank, s.in), dtype));
  return least;
}

void check_tensor(const PanelLayout::Factor& f, const TensorView& t) {
  const bool floating = t.dtype == DType::kF32 || t.dtype == DType::kF16 || t.dtype == DType::kBF16;
  const at::IntArrayRef shape = t.shape;
  TORCH_CHECK(floating && shape.equals({f.n, f.k}) &&
                  t.bytes.size() == static_cast<size_t>(f.n * f.k) * dtype_size(t.dtype),
              dtype_name(t.dtype), " values of ", shape, " for panels of [", f.n, ", ", f.k, "]");
}

template <typename From, typename T>
T converted(From value) {
  if constexpr (std::is_same_v<From, T>)
    return value;
  else if constexpr (std::is_same_v<From, c10::Half>)
    return kernels::from_float<T>(static_cast<float>(value));
  else
    return kernels::from_float<T>(kernels::to_float(value));
}

template <typename From, typename T>
void convert(const uint8_t* from, int64_t count, T* to) {
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * static_cast<int64_t>(sizeof(From)), sizeof(From));
    to[i] = converted<From, T>(value);
  }
}

// Rows of a tensor in the dtype of the panels.
template <typename T>
class Rows {
 public:
  Rows(const TensorView& tensor, int64_t k) : tensor_(tensor), k_(k) {}

  // The pointer is valid until the next call.
  const T* read(int64_t row, int64_t count) {
    const auto stride = static_cast<int64_t>(dtype_size(tensor_.dtype)) * k_;
    const uint8_t* from = tensor_.bytes.data() + row * stride;
    const bool same = tensor_.dtype == (sizeof(T) == 2 ? DType::kBF16 : DType::kF32);
    if (same && reinterpret_cast<uintptr_t>(from) % alignof(T) == 0)
      return reinterpret_cast<const T*>(from);
    scratch_.resize(static_cast<size_t>(count * k_));
    switch (tensor_.dtype) {
      case DType::kF32: convert<float>(from, count * k_, scratch_.data()); break;
      case DType::kF16: convert<c10::Half>(from, count * k_, scratch_.data()); break;
      default: convert<bf16>(from, count * k_, scratch_.data()); break;
    }
    return scratch_.data();
  }

 private:
  const TensorView& tensor_;
  int64_t k_;
  std::vector<T> scratch_;
};

template <typename T>
void write_factor(const PanelLayout::Factor& f, std::span<const PanelLayout::Piece> pieces,
                  const TensorView& tensor, std::span<std::byte* const> blocks) {
  constexpr int64_t kPanelsTogether = 4;  // amortises the cost of a call at low ranks
  Rows<T> rows(tensor, f.k);
  const int64_t panels = panels_of(f.n);
  for (int64_t p = 0, count; p < panels; p += count) {
    const int64_t within = p % f.panels_per_piece;
    count = std::min({kPanelsTogether, f.panels_per_piece - within, panels - p});
    const PanelLayout::Piece& piece = pieces[p / f.panels_per_piece];
    const int64_t row = p * kPanelOutputs, row_count = std::min(f.n - row, count * kPanelOutputs);
    T* to = reinterpret_cast<T*>(blocks[piece.block] + piece.offset) +
            within * kernels::panel_elements<T>(f.k);
    kernels::pack_panels<T>(rows.read(row, row_count), row_count, f.k, to, serial_for);
  }
}

}  // namespace

size_t largest_panel_bytes(int64_t widest_input, int64_t max_rank, at::ScalarType dtype) {
  return panel_bytes(std::max(widest_input, max_rank), dtype);
}

Result<PanelLayout> PanelLayout::make(std::span<const LoraShape> shapes, at::ScalarType dtype,
                                      size_t block_bytes) {
  for (const LoraShape& s : shapes) check_shape(s, dtype);
  PanelLayout layout;
  layout.dtype_ = dtype;
  layout.block_bytes_ = block_bytes;
  BlockFiller filler(block_bytes, least_panel(shapes, dtype));
  const auto add = [&](int64_t n, int64_t k) {
    const size_t panel = panel_bytes(k, dtype);
    const int64_t panels = panels_of(n);
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

void PanelLayout::write(size_t index, const TensorView& a, const TensorView& b,
                        std::span<std::byte* const> blocks) const {
  TORCH_CHECK(index < modules_.size() && blocks.size() == static_cast<size_t>(blocks_), "module ",
              index, " of ", modules_.size(), " into ", blocks.size(), " blocks instead of ",
              blocks_);
  const Module& m = modules_[index];
  check_tensor(m.a, a);
  check_tensor(m.b, b);
  with_cpu_type(dtype_, [&](auto t) {
    write_factor<decltype(t)>(m.a, pieces(m.a), a, blocks);
    write_factor<decltype(t)>(m.b, pieces(m.b), b, blocks);
  });
}

}  // namespace valora::ops
