#include "serving/batch/batch_builder.h"

#include <algorithm>

namespace valora::serving {
namespace {

using scheduler::StepItem;
using scheduler::StepPlan;

void append_uses(std::span<const AppliedAdapter> uses, int64_t begin, int64_t end,
                 std::vector<AdapterRows>& rows) {
  for (const AppliedAdapter& use : uses) rows.push_back({begin, end, use.adapter.get(), use.scale});
}

// Where the step reads and writes the sequence's state.
kernels::StateSpan state_of(const StepItem& item) {
  static_assert(kernels::StateSpan::kMostKept == memory::BlockTable::kMostKept);
  const memory::BlockTable& table = item.request->table;
  kernels::StateSpan span{.to = table.state.data()};
  if (item.request->computed_tokens > 0)
    span.from = table.start.empty() ? table.state.data() : table.start.data();
  for (size_t i = 0; i < item.kept.size(); ++i) span.kept[i] = {table.kept[i].data(), item.kept[i]};
  return span;
}

void append_tokens(const StepItem& item, FlatTokens& flat) {
  const Sequence& s = sequence_of(item);
  const int first = s.computed_tokens, last = first + item.tokens;
  flat.spans.push_back({flat.count(), item.tokens, first, s.table.blocks.data(), s.prompt->joint});
  if (!s.table.state.empty()) flat.states.push_back(state_of(item));
  flat.ids.insert(flat.ids.end(), s.tokens.begin() + first,
                  s.tokens.begin() + first + item.known());
  flat.ids.insert(flat.ids.end(), item.drafts.begin(), item.drafts.end());
  const models::Positions& known = s.prompt->positions;
  for (size_t a = 0; a < flat.positions.size(); ++a)
    for (int i = first; i < last; ++i)
      flat.positions[a].push_back(i < s.prompt_tokens ? known.prompt[a * s.prompt_tokens + i]
                                                      : i + known.delta);
}

void append_visuals(const StepItem& item, int64_t row, std::vector<VisualUse>& visual) {
  for_each_visual(item, [&](const models::VisualSpan& span, const Digest& key, int from, int to) {
    const int first = std::max(from, span.token_begin),
              last = std::min(to, span.token_begin + span.rows);
    visual.push_back(
        {row + first - from, key, span.encoded_row() + first - span.token_begin, last - first});
  });
}

void set_rope_lengths(const StepPlan& plan, FlatTokens& flat) {
  const auto changes = [](const StepItem& item) {
    return item.request->identity.rope.variant(item.request->computed_tokens + item.tokens - 1) !=
           0;
  };
  if (std::ranges::none_of(plan.items, changes)) return;
  for (const StepItem& item : plan.items)
    for (int i = 0; i < item.tokens; ++i)
      flat.rope_lengths.push_back(
          item.request->identity.rope.of(item.request->computed_tokens + i));
}

}  // namespace

void ScoredRows::add(int64_t row, std::span<const AppliedAdapter> uses) {
  const auto place = static_cast<int64_t>(rows.size());
  append_uses(uses, place, place + 1, adapters);
  rows.push_back(row);
}

// The merged adapter belongs to a request in the step, or is still merged from before. If neither
// holds, all its requests failed before the step, which then runs on the base weights.
void BatchBuilder::choose_merged(const StepPlan& plan) {
  if (merged_ && merged_->id != plan.merged) merged_ = nullptr;
  if (plan.merged == scheduler::kBaseModel) return;
  for (const StepItem& item : plan.items)
    for (const AppliedAdapter& use : sequence_of(item).owner->adapters)
      if (use.adapter->id == plan.merged) {
        merged_ = use.adapter;
        return;
      }
}

BatchMessage BatchBuilder::build(const StepPlan& plan) {
  choose_merged(plan);
  BatchMessage message(axes_);
  message.merged = merged_;
  for (const StepItem& item : plan.items) {
    const Sequence& sequence = sequence_of(item);
    const ActiveRequest& owner = *sequence.owner;
    const int64_t begin = message.tokens.count(), end = begin + item.tokens;
    append_tokens(item, message.tokens);
    // Rows before an activated LoRA's invocation use the base model.
    const int before =
        std::clamp(sequence.prompt->acts_from - sequence.computed_tokens, 0, item.tokens);
    if (before > 0) append_difference({}, merged_.get(), begin, begin + before, message.difference);
    if (before < item.tokens) {
      append_uses(owner.adapters, begin + before, end, message.uses);
      append_difference(owner.adapters, merged_.get(), begin + before, end, message.difference);
    }
    append_visuals(item, begin, message.visual);
    if (!item.yields || !owner.generates()) continue;
    for (int i = item.known() - 1; i < item.tokens; ++i)
      message.sampled.add(begin + i, uses_at(sequence, sequence.computed_tokens + i));
  }
  set_rope_lengths(plan, message.tokens);
  return message;
}

void append_difference(std::span<const AppliedAdapter> uses, const LoadedAdapter* merged,
                       int64_t begin, int64_t end, std::vector<AdapterRows>& difference) {
  const auto append = [&](const LoadedAdapter& adapter, float coefficient) {
    if (coefficient != 0) difference.push_back({begin, end, &adapter, coefficient});
  };
  float of_merged = merged ? -1 : 0;
  for (const AppliedAdapter& use : uses) {
    if (!use.adapter->on_decoder) continue;
    if (merged && use.adapter->digest == merged->digest)
      of_merged += use.scale;
    else
      append(*use.adapter, use.scale);
  }
  if (merged) append(*merged, of_merged);
}

}  // namespace valora::serving
