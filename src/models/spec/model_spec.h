// The shape of a model, without its tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapters/module_table.h"

namespace valora::models {

// Where the frequencies of rotary embeddings change with the length of the sequence.
struct RopeChange {
  int64_t beyond = 0;  // the longest sequence without a change; 0: no sequence has one
  bool each = false;   // every longer one has its own frequencies; else all have the same
  // All of a sequence's tokens have the frequencies of its prompt, which change where the prompt is
  // longer than beyond, 2 beyond, 4 beyond, … In training none changes.
  bool of_prompt = false;
};

// In place of a placeholder's id: config.json does not say it. The tokenizer does, by the family's
// placeholder.
inline constexpr int32_t kTokenByName = -1;

// The layers that keep a state of each sequence in place of keys and values: of a causal
// convolution over `channels()` channels, and a matrix for each value head.
struct StateSpec {
  int64_t layers = 0;  // 0: the model has none
  int64_t taps = 0;    // of the convolution
  int64_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
  int64_t values() const { return value_heads * value_dim; }
  int64_t channels() const { return 2 * key_heads * key_dim + values(); }
};

// Read from the configuration alone.
struct ModelSpec {
  std::string architecture;
  int64_t vocab = 0, hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  StateSpec state;
  int64_t kv_layers() const { return layers - state.layers; }  // that have keys and values
  int64_t max_positions = 0;
  int64_t window = 0;  // the shortest attention window of a layer; 0: no layer has one
  RopeChange rope_change;
  int axes = 1;  // number of position axes: 1, or 3 for M-RoPE
  // Placeholder tokens that expand to the tokens of an image or video; absent if the model takes
  // none.
  std::optional<int32_t> image_token, video_token;
  // How many tokens a picture has that attend to one another in both directions; 0: they are causal
  // like text.
  int64_t joint_tokens = 0;
  int visual_merge = 1;  // a visual token stands for visual_merge² patches
  // Embeddings of a visual token: one for the decoder's input, and one for the output of each of
  // so many first layers.
  int64_t visual_levels = 0;
  // Tokens around each temporal patch of a video, which has its time before it as text. Absent: a
  // video's tokens are adjacent.
  struct FrameMarks {
    int32_t begin = 0, end = 0;
  };
  std::optional<FrameMarks> frame_marks;
  // Of a video's temporal axis; 0: one position per temporal patch.
  double time_positions_per_second = 0;
  // The end-of-sequence token if no file of the folder names one and it depends on the decoder;
  // else Family::default_eos.
  std::optional<int32_t> default_eos;
  bool cpu_only = false;  // the kernels of GPUs lack what its layers need
  // Why several ranks cannot share the model, as a clause; empty: they can.
  std::string one_rank;
  bool whole_kv_heads = false;  // two ranks cannot have the same head of keys and values
  adapters::ModuleTable modules;
  std::vector<adapters::PrefixAlias> aliases;  // older prefixes of tensor and module names
};

}  // namespace valora::models
