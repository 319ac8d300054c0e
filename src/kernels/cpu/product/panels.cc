#include "kernels/cpu/product/panels.h"

#include <algorithm>

namespace valora::kernels {

template <typename T>
void pack_panels(const T* w, int64_t n, int64_t k, T* panels, const ParallelFor& parallel) {
  constexpr int64_t inputs = kVectorInputs<T>;
  const int64_t vectors = (k + inputs - 1) / inputs;
  parallel(0, panels_of(n),
           std::max<int64_t>(1, 65536 / std::max<int64_t>(1, panel_elements<T>(k))),
           [&](int64_t begin, int64_t end) {
             for (int64_t p = begin; p < end; ++p)
               for (int64_t j = 0; j < kPanelOutputs; ++j) {
                 const int64_t row = p * kPanelOutputs + j;
                 T* out = panels + p * panel_elements<T>(k) + j * inputs;
                 for (int64_t v = 0; v < vectors; ++v, out += kPanelOutputs * inputs)
                   for (int64_t i = 0; i < inputs; ++i) {
                     const int64_t column = v * inputs + i;
                     out[i] = row < n && column < k ? w[row * k + column] : T{};
                   }
               }
           });
}

template <typename T>
void unpack_panels(const Panels<T>& panels, T* w) {
  for (int64_t row = 0; row < panels.n; ++row) {
    const T* panel = panels.panel(row / kPanelOutputs);
    for (int64_t i = 0; i < panels.k; ++i)
      w[row * panels.k + i] = panel[panel_index<T>(row % kPanelOutputs, i)];
  }
}

#define VALORA_INSTANTIATE(T)                                                    \
  template void pack_panels(const T*, int64_t, int64_t, T*, const ParallelFor&); \
  template void unpack_panels(const Panels<T>&, T*);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)
#undef VALORA_INSTANTIATE

}  // namespace valora::kernels
