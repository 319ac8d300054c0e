#include "engine/graphs/likely_kinds.h"

#include <algorithm>

namespace valora {
namespace {

constexpr int64_t kFirstDecodes[] = {1, 2, 4, 8}, kMoreDecodes[] = {16, 24, 32};
constexpr int64_t kShort = 512, kLong = 1024;  // keys of the longest decode
constexpr int64_t kBeside = 8;                 // decodes beside a prompt

ops::StepShape decodes_of(int64_t sequences, int64_t longest) {
  return {.tokens = sequences, .decodes = sequences, .most_queries = 1, .longest = longest};
}

ops::StepShape prompt_of(int64_t tokens, int64_t decodes) {
  return {.tokens = tokens,
          .decodes = decodes,
          .prompts = 1,
          .most_queries = decodes > 0 ? 1 : 0,
          .longest = decodes > 0 ? kShort : 0};
}

// A few tokens after cached ones, which attend as decodes do.
ops::StepShape few_of(int64_t longest) {
  return {.tokens = 2, .decodes = 1, .most_queries = 2, .longest = longest};
}

ops::StepShape with_adapters(ops::StepShape step, int64_t rank) {
  if (rank == 0) return step;
  step.lora.rows = step.tokens;
  step.lora.count = step.lora.ranges = step.decodes + step.prompts;
  step.lora_longest = step.tokens - step.lora.count + 1;
  step.max_rank = rank;
  return step;
}

}  // namespace

std::vector<ops::StepBounds> likely_bounds(const StepLimits& limits, int64_t rank, bool more) {
  std::vector<ops::StepBounds> all;
  const auto add = [&](const ops::StepShape& step) {
    if (step.tokens > limits.tokens || step.decodes + step.prompts > limits.sequences) return;
    const auto bounds = ops::bounds_of(with_adapters(step, rank));
    if (bounds && std::ranges::find(all, *bounds) == all.end()) all.push_back(*bounds);
  };
  // Every bound of prompts, from the step that just exceeds the bound before.
  const auto add_prompts = [&](int64_t decodes) {
    for (int64_t tokens = decodes + 1; tokens <= ops::kMostStepTokens;) {
      add(prompt_of(tokens, decodes));
      tokens = *ops::padded_tokens(tokens) + 1;
    }
  };
  for (const int64_t sequences : kFirstDecodes) add(decodes_of(sequences, 1));
  add_prompts(0);
  add(few_of(kShort));
  if (!more) return all;
  if (limits.sequence_tokens > kShort) {
    for (const int64_t sequences : kFirstDecodes) add(decodes_of(sequences, kLong));
    add(few_of(kLong));
  }
  for (const int64_t sequences : kMoreDecodes) add(decodes_of(sequences, 1));
  add_prompts(std::clamp<int64_t>(limits.sequences - 1, 0, kBeside));
  return all;
}

}  // namespace valora
