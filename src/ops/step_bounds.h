// The bounds of the tables of captured steps. There are few, because each set of them costs a
// captured graph. Needs no torch.
#pragma once

#include <cstdint>
#include <optional>

namespace valora::ops {

// What a step's bounds are chosen by.
struct StepShape {
  int64_t tokens = 0;
  int64_t decodes = 0;       // spans of few queries, which attend as decodes do
  int64_t prompts = 0;       // the other spans
  int64_t most_queries = 0;  // of a decode
  int64_t longest = 0;       // keys of a decode
  int64_t blocks = 0;        // of the KV cache, of all spans
  bool visual = false;       // some tokens have visual embeddings
  int64_t lora_rows = 0;     // tokens of all segments of adapters
  int64_t lora_segments = 0;
  int64_t lora_ranges = 0;   // of tokens that the same segments cover
  int64_t lora_longest = 0;  // tokens of a segment
  int64_t max_rank = 0;
};

struct StepBounds {
  int32_t tokens = 0;
  int32_t decodes = 0, prompts = 0;
  int32_t longest = 0;  // keys of a decode; 0: there are no decodes
  // The embeddings of tokens are an input, and decodes may have more queries than one. Else tokens
  // are: the step has one of each sequence.
  bool embedded = false;
  int32_t lora_layers = 0;  // multiples of tokens that segments have, and of spans; 0: no adapters
  int32_t lora_tile = 0;    // tokens
  int32_t max_rank = 0;
  bool operator==(const StepBounds&) const = default;

  int32_t spans() const { return decodes + prompts; }
};

inline constexpr int32_t kMostStepTokens = 512;      // of a captured step
inline constexpr int64_t kMostStepBlocks = 1 << 18;  // of its block tables

// The smallest bounds that hold a step; absent if none do.
std::optional<StepBounds> bounds_of(const StepShape& step);
// The tokens of the smallest bounds of a step that is not one of decodes; absent beyond
// kMostStepTokens.
std::optional<int32_t> padded_tokens(int64_t tokens);

}  // namespace valora::ops
