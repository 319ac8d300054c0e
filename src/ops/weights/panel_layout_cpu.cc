#include "kernels/cpu/product/panels.h"
#include "ops/device/cpu_types.h"
#include "ops/weights/panel_layout.h"
#include "ops/weights/panel_layout_targets.h"
#include "ops/weights/tensor_rows.h"

namespace valora::ops {
namespace {

using kernels::kPanelOutputs;
using kernels::panels_of;

// Writes cut panels, one panel at a time.
template <typename T>
void write_cut(const PanelLayout::Factor& f, std::span<const PanelLayout::Piece> pieces,
               const TensorView& tensor, std::span<std::byte* const> blocks) {
  TensorRows<T> rows(tensor, f.k);
  std::vector<T> part;
  const int64_t panels = panels_of(f.n);
  for (int64_t p = 0; p < panels; ++p) {
    const int64_t count = std::min(kPanelOutputs, f.n - p * kPanelOutputs);
    const T* from = rows.read(p * kPanelOutputs, count);
    for (int64_t first = 0; first < f.k; first += f.inputs_per_piece) {
      const int64_t inputs = std::min(f.inputs_per_piece, f.k - first);
      part.resize(static_cast<size_t>(count * inputs));
      for (int64_t row = 0; row < count; ++row)
        std::copy_n(from + row * f.k + first, inputs, part.data() + row * inputs);
      const PanelLayout::Piece& piece = pieces[first / f.inputs_per_piece * panels + p];
      kernels::pack_panels<T>(part.data(), count, inputs,
                              reinterpret_cast<T*>(blocks[piece.block] + piece.offset), serial_for);
    }
  }
}

template <typename T>
void write_factor(const PanelLayout::Factor& f, std::span<const PanelLayout::Piece> pieces,
                  const TensorView& tensor, int64_t first, std::span<std::byte* const> blocks) {
  constexpr int64_t kPanelsTogether = 4;  // amortises the cost of a call at low ranks
  TensorRows<T> rows(tensor, f.k);
  const int64_t end = first + tensor.shape[0], panels = panels_of(end);
  for (int64_t p = first / kPanelOutputs, count; p < panels; p += count) {
    const int64_t within = p % f.panels_per_piece;
    count = std::min({kPanelsTogether, f.panels_per_piece - within, panels - p});
    const PanelLayout::Piece& piece = pieces[p / f.panels_per_piece];
    const int64_t row = p * kPanelOutputs, row_count = std::min(end - row, count * kPanelOutputs);
    T* to = reinterpret_cast<T*>(blocks[piece.block] + piece.offset) +
            within * kernels::panel_elements<T>(f.k);
    kernels::pack_panels<T>(rows.read(row - first, row_count), row_count, f.k, to, serial_for);
  }
}

}  // namespace

size_t panel_bytes_cpu(int64_t k, at::ScalarType dtype) {
  return with_cpu_type(dtype, [&](auto t) {
    return static_cast<size_t>(kernels::panel_elements<decltype(t)>(k)) * sizeof(t);
  });
}

int64_t panels_cpu(int64_t n) { return panels_of(n); }

void write_panels_cpu(const PanelLayout& layout, const PanelLayout::Factor& f,
                      const TensorView& tensor, int64_t first, std::span<std::byte* const> blocks) {
  with_cpu_type(layout.dtype(), [&](auto t) {
    using T = decltype(t);
    if (f.inputs_per_piece > 0)
      write_cut<T>(f, layout.pieces(f), tensor, blocks);
    else
      write_factor<T>(f, layout.pieces(f), tensor, first, blocks);
  });
}

}  // namespace valora::ops
