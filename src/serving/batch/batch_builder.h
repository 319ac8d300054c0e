// Turns a step's plan into the message that the model's ranks run. Used by the engine thread only.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/spec/positions.h"
#include "scheduler/step_plan.h"
#include "serving/batch/batch_message.h"
#include "serving/sequence.h"

namespace valora::serving {

// Every request in the engine is a Sequence.
inline Sequence& sequence_of(const scheduler::StepItem& item) {
  return static_cast<Sequence&>(*item.request);
}

// The adapters that apply to token `index` of a sequence.
inline std::span<const AppliedAdapter> uses_at(const Sequence& sequence, int index) {
  if (index < sequence.prompt->acts_from) return {};
  return sequence.owner->adapters;
}

// Calls body(span, key, begin, end) for each visual span that overlaps the tokens [begin, end) of
// an item; key: the key of its embeddings.
template <typename Body>
void for_each_visual(const scheduler::StepItem& item, Body&& body) {
  const Sequence& s = sequence_of(item);
  const int begin = s.computed_tokens, end = begin + item.tokens;
  for (size_t i = 0; i < s.prompt->visual.size(); ++i) {
    const models::VisualSpan& span = s.prompt->visual[i];
    if (span.overlaps(begin, end)) body(span, s.prompt->visual_keys[i], begin, end);
  }
}

class BatchBuilder {
 public:
  explicit BatchBuilder(int axes) : axes_(axes) {}  // axes: the model's position axes

  BatchMessage build(const scheduler::StepPlan& plan);
  // Forgets the merged adapter.
  void forget_merged() { merged_ = nullptr; }

 private:
  void choose_merged(const scheduler::StepPlan& plan);

  const int axes_;
  std::shared_ptr<const LoadedAdapter> merged_;  // the adapter merged by the last plan
};

// The difference between the adapters that rows need and the weights in use. Rows [begin, end) need
// the base model plus `uses`; the weights in use are the base model plus `merged` (may be null) at
// coefficient 1. Appends the adapters that make up the difference on the decoder, if there is any.
void append_difference(std::span<const AppliedAdapter> uses, const LoadedAdapter* merged,
                       int64_t begin, int64_t end, std::vector<AdapterRows>& difference);

}  // namespace valora::serving
