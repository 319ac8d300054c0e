// Rotary position embedding with one axis (text) or three (M-RoPE of Qwen2-VL and Qwen3-VL:
// sections of the frequencies use the temporal, height and width positions).
//
// The frequencies of `dynamic` and `longrope` change with the length of the sequence. transformers
// recomputes them in each forward pass from the largest position in it, and keeps cached keys as
// they were written. So a prompt's tokens get the frequencies of the prompt's length, and a
// generated token those of the length that includes it. valora computes a prompt in chunks, after a
// prefix that another request computed, or again after a preemption. The length is therefore stored
// per token, derived from the request alone (memory::RopeLengths), and the keys of KV blocks
// include the resulting change: two requests share a block only if all tokens up to it have equal
// frequencies. A longer prompt that begins with an earlier answer shares its blocks only as far as
// both have the same frequencies; requests within RopeChange::beyond share as with other ropes.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <vector>

#include "models/decoder/rope_scaling.h"
#include "models/spec/config_reader.h"
#include "ops/elementwise/elementwise.h"

namespace valora::models {

struct RotaryConfig {
  double theta = 10000;
  int64_t dim = 0;  // number of rotated elements at the start of each head; 0: the whole head
  std::vector<int64_t> sections;  // frequencies per axis; empty: one axis
  // The axes alternate: every third frequency belongs to height, and every third to width, as long
  // as their sections last; all others to time. If false, the sections are contiguous.
  bool interleaved = false;
  double linear_factor = 1;     // divides the positions
  double attention_factor = 1;  // multiplies cosines and sines
  std::optional<Llama3Scaling> llama3;
  std::optional<YarnScaling> yarn;
  std::optional<LongRopeScaling> long_rope;
  std::optional<DynamicScaling> dynamic;
  std::optional<DoublingScaling> doubling;
  // In serving, a query at a later position than this is multiplied by the logarithm of its
  // (1-based) position to this base (Qwen's logn attention); 0: never.
  int64_t log_beyond = 0;
  RopeChange change;
  int64_t max_positions = 0;  // number of positions that can be served
};

// Reads rope_theta and rope_scaling (transformers 4) or rope_parameters (5). Supports default,
// mrope, linear, dynamic, yarn, longrope and llama3; throws LoadError for other types.
// max_positions: max_position_embeddings. share: see DecoderDefaults::rotary_share.
RotaryConfig read_rotary(const ConfigReader& text, int64_t head_dim, double default_theta,
                         int64_t max_positions, double share = 0);

using CosSin = ops::RotaryAngles;

class Rotary {
 public:
  Rotary() = default;
  Rotary(const RotaryConfig& config, int64_t dim, at::Device device);
  // positions: int64 [axes, T]. lengths: int64 [T], the sequence length that determines each
  // token's frequencies; undefined if none exceeds RopeChange::beyond.
  CosSin operator()(const at::Tensor& positions, const at::Tensor& lengths = {}) const;
  // The queries' angles in serving, derived from the keys': see RotaryConfig::log_beyond.
  CosSin of_queries(const CosSin& keys, const at::Tensor& positions) const;

 private:
  at::Tensor frequencies(const at::Tensor& lengths) const;

  at::Tensor inv_freq_;       // float [dim / 2]
  at::Tensor long_inv_freq_;  // float [dim / 2], LongRoPE's beyond RopeChange::beyond
  at::Tensor doubled_;        // float [1 + doublings, dim / 2]
  at::Tensor axis_of_;        // int64 [dim / 2]; undefined: one axis
  double theta_ = 0;
  int64_t dim_ = 0;
  std::optional<DynamicScaling> dynamic_;
  std::optional<DoublingScaling> doubling_;
  int64_t log_beyond_ = 0;
  RopeChange change_;
  double attention_factor_ = 1;
};

}  // namespace valora::models
