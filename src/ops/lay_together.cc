#include "ops/lay_together.h"

#include "ops/huge_memory.h"

namespace valora::ops {
namespace {

constexpr int64_t kLine = 64;  // bytes: panels begin at cache lines

int64_t room_of(const Weight& w) {
  const int64_t step = kLine / static_cast<int64_t>(c10::elementSize(w.dtype()));
  return (w.data().numel() + step - 1) / step * step;
}

}  // namespace

void lay_together(std::span<Weight* const> weights) {
  int64_t elements = 0;
  const Weight* first = nullptr;
  for (const Weight* w : weights) {
    if (!w->packed()) continue;
    if (!first) first = w;
    TORCH_CHECK(w->dtype() == first->dtype(), "weights of ", w->dtype(), " and ", first->dtype(),
                " in one memory");
    elements += room_of(*w);
  }
  if (!first) return;
  const at::Tensor memory = huge_zeros(elements, first->dtype());
  int64_t at = 0;
  for (Weight* w : weights) {
    if (!w->packed()) continue;
    const at::Tensor place = memory.narrow(0, at, w->data().numel());
    place.copy_(w->data());
    at += room_of(*w);
    *w = w->with_data(place);
  }
}

}  // namespace valora::ops
