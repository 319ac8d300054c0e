#include "ops/lora.h"

#include <algorithm>

#include "ops/lay_together.h"

namespace valora::ops {
namespace {

kernels::LoraFactor factor_of(const Weight& w) {
  if (w.form() == WeightForm::kPlain) return {};
  return {.data = w.data().const_data_ptr(), .pieces = nullptr, .panels_per_piece = 0};
}

bool alike(const Weight& a, const Weight& b) {
  return a.form() == b.form() && a.dtype() == b.dtype();
}

}  // namespace

void AdapterWeights::set(int module, LoraWeight weight, float scale) {
  const Weight &a = weight.a, &b = weight.b;
  TORCH_CHECK(module >= 0 && static_cast<size_t>(module) < table_.size(), "an adapter on module ",
              module, " of ", table_.size());
  const Weight* other = any();
  TORCH_CHECK(a.out() == b.in() && alike(a, b) && (!other || alike(a, *other)), "an adapter of [",
              b.out(), ", ", b.in(), "] x [", a.out(), ", ", a.in(), "], or in different forms");
  table_[module] = {factor_of(a), factor_of(b), a.out(), a.in(), b.out(), scale};
  touched_[module / 64] |= uint64_t{1} << (module % 64);
  weights_[module] = std::move(weight);
  any_ = module;
}

void AdapterWeights::lay_together() {
  std::vector<Weight*> all;
  for (auto& weight : weights_)
    if (weight) all.insert(all.end(), {&weight->a, &weight->b});
  ops::lay_together(all);
  for (size_t i = 0; i < weights_.size(); ++i)
    if (weights_[i]) {
      table_[i].a = factor_of(weights_[i]->a);
      table_[i].b = factor_of(weights_[i]->b);
    }
}

void LoraBatch::add(int64_t token_begin, int64_t token_end, const AdapterWeights& adapter,
                    float coefficient) {
  TORCH_CHECK(0 <= token_begin && token_begin <= token_end, "a segment of tokens [", token_begin,
              ", ", token_end, ")");
  token_end_ = std::max(token_end_, token_end);
  for (size_t i = segments_.size(); i-- > 0;) {
    kernels::LoraSegment& s = segments_[i];
    if (adapters_[i] != &adapter || s.coefficient != coefficient || s.token_end != token_begin)
      continue;
    s.token_end = token_end;
    return;
  }
  const Weight* weight = adapter.any();
  TORCH_CHECK(adapters_.empty() || adapters_[0]->table().size() == adapter.table().size(),
              "adapters of models of ", adapters_[0]->table().size(), " and ",
              adapter.table().size(), " modules in one batch");
  TORCH_CHECK(!any_ || !weight || alike(*any_, *weight),
              "adapters in different forms in one batch");
  if (!any_) any_ = weight;
  segments_.push_back({token_begin, token_end, adapter.table().data(), coefficient});
  adapters_.push_back(&adapter);
  touched_.resize(adapter.touched().size());
  for (size_t i = 0; i < touched_.size(); ++i) touched_[i] |= adapter.touched()[i];
}

}  // namespace valora::ops
