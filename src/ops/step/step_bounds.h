// The bounds of captured steps' tables. There are few, because each distinct set costs a captured
// graph. Needs no torch.
#pragma once

#include <cstdint>
#include <optional>

namespace valora::ops {

// The properties of a step that determine its bounds.
struct StepShape {
  int64_t tokens = 0;
  int64_t decodes = 0;       // spans with few queries, which attend as decodes do
  int64_t prompts = 0;       // all other spans
  int64_t most_queries = 0;  // of any decode
  int64_t longest = 0;       // keys of the longest decode
  int64_t blocks = 0;        // KV cache blocks of all spans
  bool embedded = false;     // embeddings of some tokens are not those of the model's table
  bool joint = false;        // some tokens are in joint ranges
  struct Segments {
    int64_t rows = 0;  // tokens summed over all segments
    int64_t count = 0;
    int64_t ranges = 0;  // ranges of tokens covered by the same segments
  };
  Segments lora, outputs;    // of low-rank products, of output changes
  int64_t lora_longest = 0;  // tokens of the longest segment
  int64_t max_rank = 0;
};

struct StepBounds {
  int32_t tokens = 0;
  int32_t decodes = 0, prompts = 0;
  int32_t longest = 0;  // keys of the longest decode; 0: there are no decodes
  // True: the inputs are token embeddings, and decodes may have several queries. False: the inputs
  // are token ids, one per sequence.
  bool embedded = false;
  bool joint = false;       // tokens may be in joint ranges
  int32_t lora_layers = 0;  // segments as a multiple of tokens or spans; 0: no adapters
  int32_t lora_tile = 0;    // tokens
  int32_t max_rank = 0;
  int32_t output_layers = 0;  // the same for segments with output changes
  bool operator==(const StepBounds&) const = default;

  int32_t spans() const { return decodes + prompts; }
};

inline constexpr int32_t kMostStepTokens = 512;      // in a captured step
inline constexpr int64_t kMostStepBlocks = 1 << 18;  // in its block tables
inline constexpr int32_t kMostStepSpans = 256 + 64;  // decodes and others

// The smallest bounds that hold a step; nullopt if none do.
std::optional<StepBounds> bounds_of(const StepShape& step);
// The token bound of a step with embeddings; nullopt above kMostStepTokens.
std::optional<int32_t> padded_tokens(int64_t tokens);

}  // namespace valora::ops
