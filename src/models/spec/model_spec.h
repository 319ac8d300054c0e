// The shape of a model, without its tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapters/targets/module_table.h"

namespace valora::models {

// How rotary frequencies change with the length of the sequence.
struct RopeChange {
  int64_t beyond = 0;  // the longest sequence without a change; 0: they never change
  bool each = false;   // every longer length has its own frequencies; else all share one set
  // All tokens of a sequence use the frequencies of its prompt, which change when the prompt
  // exceeds beyond, 2 beyond, 4 beyond, … In training they never change.
  bool of_prompt = false;
};

// Instead of a placeholder's id, if config.json lacks it: the tokenizer maps the family's
// placeholder text to the id.
inline constexpr int32_t kTokenByName = -1;

// The layers that keep a recurrent state per sequence instead of keys and values: the state of a
// causal convolution over `channels()` channels, and a matrix per value head.
struct StateSpec {
  int64_t layers = 0;  // 0: the model has no such layers
  int64_t taps = 0;    // kernel size of the convolution
  int64_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
  int64_t values() const { return value_heads * value_dim; }
  int64_t channels() const { return 2 * key_heads * key_dim + values(); }
  // Of each of `ranks` ranks, which divide key_heads.
  StateSpec part(int ranks) const {
    StateSpec part = *this;
    part.key_heads /= ranks, part.value_heads /= ranks;
    return part;
  }
};

// The mixtures of experts in a model's layers.
struct ExpertsSpec {
  int64_t count = 0;   // per mixture; 0: the model has no mixtures
  int64_t chosen = 0;  // per token
};

// Everything here is read from the configuration alone.
struct ModelSpec {
  std::string architecture;
  int64_t vocab = 0, hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  StateSpec state;
  ExpertsSpec experts;
  int64_t kv_layers() const { return layers - state.layers; }  // layers with keys and values
  int64_t max_positions = 0;
  RopeChange rope_change;
  int axes = 1;  // number of position axes: 1, or 3 for M-RoPE
  // Placeholder tokens that expand to an image's or video's tokens; absent if the model takes none.
  std::optional<int32_t> image_token, video_token;
  // The number of tokens of a picture, which attend to each other bidirectionally; 0: visual tokens
  // are causal like text.
  int64_t joint_tokens = 0;
  int visual_merge = 1;  // one visual token per visual_merge² patches
  // Additional embeddings of a visual token, one for the output of each of the first visual_levels
  // layers.
  int64_t visual_levels = 0;
  // Tokens around each temporal patch of a video, whose timestamp precedes it as text. Absent: a
  // video's tokens are contiguous.
  struct FrameMarks {
    int32_t begin = 0, end = 0;
  };
  std::optional<FrameMarks> frame_marks;
  // Scale of a video's temporal axis; 0: one position per temporal patch.
  double time_positions_per_second = 0;
  // The end-of-sequence token if no file of the folder names one and it depends on the decoder;
  // otherwise Family::default_eos applies.
  std::optional<int32_t> default_eos;
  bool whole_kv_heads = false;  // two ranks cannot share a KV head
  adapters::ModuleTable modules;
  std::vector<adapters::PrefixAlias> aliases;  // older prefixes of tensor and module names
};

}  // namespace valora::models
