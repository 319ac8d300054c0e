#include "engine/adapters/mode_switcher.h"

#include <utility>

#include "engine/adapters/adapter_tensors.h"
#include "models/spec/load_error.h"
#include "ops/device/huge_memory.h"
#include "ops/merge/merge.h"
#include "ops/weights/pack_contiguous.h"

namespace valora {
namespace {

bool same(const std::shared_ptr<const serving::LoadedAdapter>& a,
          const std::shared_ptr<const serving::LoadedAdapter>& b) {
  return a == b || (a && b && a->digest == b->digest);
}

}  // namespace

int64_t ModeSwitcher::shadow_bytes(models::Model& model) {
  int64_t bytes = 0;
  for (const models::Linear* linear : model.decoder_linears())
    bytes += ops::aligned_elements(linear->weight()) *
             static_cast<int64_t>(c10::elementSize(linear->weight().dtype()));
  return bytes;
}

ModeSwitcher::ModeSwitcher(models::Model& model, models::Weights& checkpoint, int rank,
                           MergePlace place, std::unique_ptr<ops::LaunchedWork> launched,
                           const Clock& clock)
    : model_(model),
      checkpoint_(checkpoint),
      rank_(rank),
      place_(place),
      launched_(std::move(launched)),
      clock_(clock) {
  for (models::Linear* linear : model.decoder_linears()) targets_.push_back({linear, {}});
  merged_.modules.resize(model.spec().modules.modules().size());
  if (place == MergePlace::kShadow)
    make_shadow();
  else
    for (Target& target : targets_) target.merged = target.linear->weight();
}

void ModeSwitcher::make_shadow() {
  if (targets_.empty()) return;
  int64_t elements = 0;
  for (const Target& target : targets_) elements += ops::aligned_elements(target.linear->weight());
  const ops::Weight& like = targets_.front().linear->weight();
  at::Tensor shadow = like.data().is_cpu()
                          ? ops::huge_zeros(elements, like.dtype())
                          : at::empty({elements}, like.data().options().dtype(like.dtype()));
  // Written now, so that page faults do not delay the first merge and a lack of memory shows at
  // start-up.
  shadow.zero_();
  int64_t at = 0;
  for (Target& target : targets_) {
    const ops::Weight& weight = target.linear->weight();
    const at::Tensor place = shadow.narrow(0, at, weight.elements());
    target.merged =
        weight.with_data(weight.quantised() ? place : place.view(weight.data().sizes()));
    at += ops::aligned_elements(weight);
  }
}

const models::MergedWeights* ModeSwitcher::use(
    const std::shared_ptr<const serving::LoadedAdapter>& adapter) {
  if (!same(adapter, in_use_)) ++stats_.switches;
  in_use_ = nullptr;
  if (!adapter) {
    restore();
    return nullptr;
  }
  if (!same(adapter, held_)) merge(adapter);
  in_use_ = held_;
  return place_ == MergePlace::kShadow ? &merged_ : nullptr;
}

void ModeSwitcher::forget() {
  in_use_ = nullptr;
  restore();
  held_ = nullptr;
}

void ModeSwitcher::merge(const std::shared_ptr<const serving::LoadedAdapter>& adapter) {
  restore();
  held_ = nullptr;
  const TimePoint begin = clock_.now();
  std::vector<ops::Merge> merges;
  for (const Target& target : targets_) {
    const int module = target.linear->module();
    const ops::AdapterWeights& weights = weights_of(*adapter, rank_);
    const bool touched = weights.touches(module);
    merged_.modules[module] = touched ? target.merged : ops::Weight();
    if (!touched) continue;
    merges.push_back({&target.linear->weight(), &target.merged, &weights, module,
                      weights.module(module)->scale});
    if (place_ == MergePlace::kInPlace) overwritten_.push_back(target.linear);
  }
  ops::merge(merges);
  launched_->wait();  // so that merge_seconds includes the device's time
  held_ = adapter;
  ++stats_.merges;
  stats_.merge_seconds += seconds(clock_.now() - begin);
}

// Rereads overwritten base weights from the checkpoint, because subtracting the adapter would leave
// rounding errors.
void ModeSwitcher::restore() try {
  if (overwritten_.empty()) return;
  const TimePoint begin = clock_.now();
  held_ = nullptr;
  for (models::Linear* linear : overwritten_) {
    checkpoint_.refill(model_.spec().modules.modules()[linear->module()].name, linear->weight(),
                       linear->slice());
  }
  launched_->wait();
  overwritten_.clear();
  stats_.merge_seconds += seconds(clock_.now() - begin);
} catch (const models::LoadError& e) {
  throw WeightsLostError(e.error().message +
                         ": the base model cannot be restored from it (--merge inplace)");
}

}  // namespace valora
