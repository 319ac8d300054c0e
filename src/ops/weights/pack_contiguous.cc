#include "ops/weights/pack_contiguous.h"

#include "ops/device/huge_memory.h"

namespace valora::ops {

int64_t aligned_elements(const Weight& w) {
  constexpr int64_t kLine = 64;  // bytes
  const int64_t step = kLine / static_cast<int64_t>(c10::elementSize(w.dtype()));
  return (w.elements() + step - 1) / step * step;
}

void pack_contiguous(std::span<Weight* const> weights) {
  int64_t elements = 0;
  const Weight* first = nullptr;
  for (const Weight* w : weights) {
    if (w->form() == WeightForm::kPlain) continue;
    if (!first) first = w;
    TORCH_CHECK(w->dtype() == first->dtype() && !w->quantised(), "weights of ", w->dtype(), " and ",
                first->dtype(), " in one memory, or in integers");
    elements += aligned_elements(*w);
  }
  if (!first) return;
  const at::Tensor memory = huge_zeros(elements, first->dtype());
  int64_t at = 0;
  for (Weight* w : weights) {
    if (w->form() == WeightForm::kPlain) continue;
    const at::Tensor place = memory.narrow(0, at, w->data().numel());
    place.copy_(w->data());
    at += aligned_elements(*w);
    *w = w->with_data(place);
  }
}

}  // namespace valora::ops
