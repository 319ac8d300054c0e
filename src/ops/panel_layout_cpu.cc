#include <cstring>

#include "kernels/cpu/product/panels.h"
#include "ops/cpu_types.h"
#include "ops/panel_layout.h"
#include "ops/panel_layout_targets.h"

namespace valora::ops {
namespace {

using kernels::bf16;
using kernels::kPanelOutputs;
using kernels::panels_of;

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

size_t panel_bytes_cpu(int64_t k, at::ScalarType dtype) {
  return with_cpu_type(dtype, [&](auto t) {
    return static_cast<size_t>(kernels::panel_elements<decltype(t)>(k)) * sizeof(t);
  });
}

int64_t panels_cpu(int64_t n) { return panels_of(n); }

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
