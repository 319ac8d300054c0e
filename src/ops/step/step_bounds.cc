#include "ops/step/step_bounds.h"

#include <algorithm>
#include <bit>
#include <span>

namespace valora::ops {
namespace {

// Surplus tokens cost arithmetic when a step is not limited by reading weights.
constexpr int32_t kTokens[] = {16, 32, 64, 96, 128, 192, 256, 320, 384, 448, kMostStepTokens};
constexpr int32_t kDecodeTokens[] = {1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256};
// Surplus spans cost empty thread blocks, and the keys of real spans are divided into fewer parts.
constexpr int32_t kDecodes[] = {0, 8, 32, 128, 256};
constexpr int32_t kPrompts[] = {0, 2, 8, 64};
constexpr int32_t kLeastLongest = 512, kLeastRank = 16, kMostLayers = 8;
// Steps with prompts and more tokens than this use wide adapter tiles, because one of the prompts
// is usually long.
constexpr int32_t kNarrowTokens = 64;
constexpr int32_t kNarrowTile = 16, kWideTile = 32;

std::optional<int32_t> least_above(std::span<const int32_t> sizes, int64_t value) {
  const auto* const it = std::ranges::lower_bound(sizes, value).base();
  return it == sizes.data() + sizes.size() ? std::nullopt : std::optional(*it);
}

// The smallest least · step^n that is at least `value`.
int32_t power_above(int64_t value, int32_t least, int32_t step = 2) {
  int64_t power = least;
  while (power < value) power *= step;
  return static_cast<int32_t>(std::min<int64_t>(power, INT32_MAX));
}

int64_t parts(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

// Segments as a multiple of tokens or spans, 0 without segments; nullopt if there are too many.
std::optional<int32_t> layers_of(const StepShape::Segments& segments, const StepBounds& bounds) {
  if (segments.count == 0) return 0;
  const int64_t layers =
      std::max({parts(segments.rows, bounds.tokens), parts(segments.count, bounds.spans()),
                parts(segments.ranges, bounds.spans())});
  return layers > kMostLayers ? std::nullopt : std::optional(power_above(layers, 1));
}

bool add_adapters(const StepShape& step, StepBounds& bounds) {
  const auto outputs = layers_of(step.outputs, bounds);
  if (!outputs) return false;
  bounds.output_layers = *outputs;
  if (step.max_rank == 0) return true;
  const auto layers = layers_of(step.lora, bounds);
  if (!layers) return false;
  bounds.lora_layers = *layers;
  const bool wide =
      bounds.embedded ? bounds.tokens > kNarrowTokens : step.lora_longest > kNarrowTokens;
  bounds.lora_tile = wide ? kWideTile : kNarrowTile;
  bounds.max_rank = power_above(step.max_rank, kLeastRank);
  return true;
}

}  // namespace

std::optional<int32_t> padded_tokens(int64_t tokens) { return least_above(kTokens, tokens); }

std::optional<StepBounds> bounds_of(const StepShape& step) {
  if (step.decodes + step.prompts == 0 || step.blocks > kMostStepBlocks) return std::nullopt;
  StepBounds bounds;
  bounds.embedded = step.embedded || step.prompts > 0 || step.most_queries > 1;
  bounds.joint = step.joint;
  const auto tokens = least_above(
      bounds.embedded ? std::span<const int32_t>(kTokens) : std::span<const int32_t>(kDecodeTokens),
      step.tokens);
  const auto decodes = least_above(kDecodes, step.decodes),
             prompts = least_above(kPrompts, step.prompts);
  if (!tokens || !decodes || !prompts) return std::nullopt;
  bounds.tokens = *tokens;
  bounds.decodes = bounds.embedded ? std::min(*decodes, *tokens) : *tokens;
  bounds.prompts = *prompts;
  if (step.decodes > 0)
    bounds.longest = power_above(step.longest, kLeastLongest, bounds.embedded ? 4 : 2);
  if (!add_adapters(step, bounds)) return std::nullopt;
  return bounds;
}

}  // namespace valora::ops
