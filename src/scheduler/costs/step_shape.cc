#include "scheduler/costs/step_shape.h"

#include <algorithm>

#include "scheduler/step_plan.h"

namespace valora::scheduler {

namespace {

// How many of the next `tokens` tokens the request's adapters apply to: all, or with activated LoRA
// those from its invocation on.
int adapted_tokens(const Request& request, int tokens) {
  if (request.identity.late == Digest{}) return tokens;
  return std::clamp(request.computed_tokens + tokens - request.identity.late_from, 0, tokens);
}

}  // namespace

const char* mode_name(Mode mode) {
  switch (mode) {
    case Mode::kMerged: return "merged";
    case Mode::kMixture: return "mixture";
    case Mode::kUnmerged: break;
  }
  return "unmerged";
}

WeightsChange change_to(AdapterId merged, const WeightsInUse& weights) {
  WeightsChange change{.switches = merged != weights.merged, .after = weights};
  change.after.merged = merged;
  if (merged == weights.held || (merged == kBaseModel && !weights.in_place)) return change;
  change.merges = merged != kBaseModel;
  change.restores = weights.in_place && weights.held != kBaseModel;
  change.after.held = merged;
  return change;
}

StepShaper::StepShaper(Mode mode, AdapterId merged) : merged_(merged) { shape_.mode = mode; }

void StepShaper::add(const StepItem& item) {
  add(*item.request, item.tokens, static_cast<int>(item.drafts.size()));
  if (item.known() > 1) shape_.scored_tokens += std::max(0, item.scored - (item.yields ? 1 : 0));
}

void StepShaper::add(const Request& request, int tokens, int drafts) {
  const bool decode = tokens - drafts == 1 && request.computed_tokens >= request.prompt_tokens;
  (decode ? shape_.decode_tokens : shape_.prefill_tokens) += tokens;
  shape_.draft_tokens += drafts;
  // Token i attends to i + 1 keys: the i tokens before it and itself.
  const int64_t first = request.computed_tokens + 1, last = request.computed_tokens + tokens;
  (decode ? shape_.decode_context : shape_.prefill_context) += (first + last) * tokens / 2;
  const int adapted = adapted_tokens(request, tokens);
  float of_merged = merged_ == kBaseModel ? 0 : -1;
  for (const DecoderAdapter& use : request.decoder_adapters) {
    if (use.id == merged_) {
      of_merged += use.scale;
      merged_rank_ = use.rank;
    } else if (use.scale != 0 && adapted > 0) {
      apply(use.id, use.rank, adapted);
    }
  }
  if (of_merged != 0) apply(merged_, 0, tokens);
}

// The rank of the merged adapter is only known after one of its requests was added: see shape().
void StepShaper::apply(AdapterId adapter, int rank, int tokens) {
  if (std::ranges::find(applied_, adapter, &std::pair<AdapterId, int>::first) == applied_.end())
    applied_.emplace_back(adapter, rank);
  shape_.token_ranks += int64_t{rank} * tokens;
  if (adapter == merged_) merged_tokens_ += tokens;
}

void StepShaper::change(const WeightsChange& change) {
  shape_.switches = change.switches;
  shape_.merges = change.merges;
  shape_.restores = change.restores;
}

StepShape StepShaper::shape() const {
  StepShape shape = shape_;
  shape.segments = static_cast<int>(applied_.size());
  for (const auto& [adapter, rank] : applied_)
    shape.ranks += adapter == merged_ ? merged_rank_ : rank;
  shape.token_ranks += int64_t{merged_rank_} * merged_tokens_;
  if (shape.merges) shape.merged_rank = merged_rank_;
  return shape;
}

}  // namespace valora::scheduler
