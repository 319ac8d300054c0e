#include "ops/weights/adjacent_weights.h"

#include <algorithm>
#include <vector>

#include "ops/device/dispatch.h"

namespace valora::ops {
namespace {

constexpr size_t kPlaceAlignment = 64;  // bytes; the shadow aligns weights likewise

bool can_be_adjacent(const Weight& w, const Weight& first) {
  return target_of(w) == Target::kCuda && !w.quantised() && w.data().is_contiguous() &&
         w.in() == first.in() && w.dtype() == first.dtype() &&
         w.bias().defined() == first.bias().defined() && w.bytes() % kPlaceAlignment == 0;
}

bool is_adjacent(const at::Tensor& next, const at::Tensor& before) {
  return next.is_alias_of(before) && next.is_contiguous() && before.is_contiguous() &&
         next.storage_offset() == before.storage_offset() + before.numel();
}

bool is_adjacent(const Weight& next, const Weight& before) {
  if (next.quantised() || before.quantised() || next.in() != before.in() ||
      next.bias().defined() != before.bias().defined())
    return false;
  return is_adjacent(next.data(), before.data()) &&
         (!next.bias().defined() || is_adjacent(next.bias(), before.bias()));
}

}  // namespace

void place_adjacent(std::span<Weight* const> weights) {
  if (weights.size() < 2 || !std::ranges::all_of(weights, [&](const Weight* w) {
        return w->defined() && can_be_adjacent(*w, *weights[0]);
      }))
    return;
  std::vector<at::Tensor> values, biases;
  for (const Weight* w : weights) {
    values.push_back(w->data());
    if (w->bias().defined()) biases.push_back(w->bias());
  }
  const at::Tensor all = at::cat(values),
                   all_biases = biases.empty() ? at::Tensor() : at::cat(biases);
  int64_t row = 0;
  for (Weight* w : weights) {
    const int64_t rows = w->out();
    *w = w->with_memory(all.narrow(0, row, rows),
                        all_biases.defined() ? all_biases.narrow(0, row, rows) : at::Tensor());
    row += rows;
  }
}

std::optional<AdjacentWeights> as_one(std::span<const ModuleWeight> linears) {
  int64_t rows = 0;
  for (size_t i = 0; i < linears.size(); ++i) {
    if (i > 0 && !is_adjacent(*linears[i].weight, *linears[i - 1].weight)) return std::nullopt;
    rows += linears[i].weight->out();
  }
  const Weight& first = *linears[0].weight;
  const at::Tensor& bias = first.bias();
  return AdjacentWeights{first.data().as_strided({rows, first.in()}, {first.in(), 1}),
                         bias.defined() ? bias.as_strided({rows}, {1}) : at::Tensor()};
}

}  // namespace valora::ops
