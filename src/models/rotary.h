// Rotary position embedding with one axis (text) or three (M-RoPE of Qwen2-VL and Qwen3-VL:
// sections of the frequencies use the temporal, height and width positions).
//
// The frequencies of `dynamic` and `longrope` change with the length of the sequence. transformers
// takes them anew in each forward pass, from the largest position in it, and keeps cached keys as
// they were written. So the tokens of a prompt have those of the prompt's length, and a generated
// token has those of the length with it. valora computes a prompt in chunks, after a prefix that
// another request computed, or again after a preemption. Therefore the length is data of each
// token, made from the request alone (memory::RopeLengths), and the keys of KV blocks contain what
// it changes: a block is shared by equal tokens with equal frequencies all the way from the first
// token on. A longer prompt that begins with an earlier answer shares its blocks only as far as
// both have the same frequencies; requests within RopeChange::beyond share as with other ropes.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <vector>

#include "models/rope_scaling.h"
#include "models/spec/config_reader.h"
#include "ops/elementwise.h"

namespace valora::models {

struct RotaryConfig {
  double theta = 10000;
  int64_t dim = 0;                // how much of a head is rotated, its first elements; 0: all of it
  std::vector<int64_t> sections;  // frequencies per axis; empty: one axis
  // The axes take turns: every third frequency is of height, and of width, as long as their
  // sections last; all others are of time. Else the sections are side by side.
  bool interleaved = false;
  double linear_factor = 1;     // divides the positions
  double attention_factor = 1;  // multiplies cosines and sines
  std::optional<Llama3Scaling> llama3;
  std::optional<YarnScaling> yarn;
  std::optional<LongRopeScaling> long_rope;
  std::optional<DynamicScaling> dynamic;
  std::optional<DoublingScaling> doubling;
  // Queries behind so many tokens are multiplied by the logarithm of their token's number to the
  // base of this one, in serving alone (Qwen's logn attention); 0: none are.
  int64_t log_beyond = 0;
  RopeChange change;
  int64_t max_positions = 0;  // how many positions can be served
};

// Reads rope_theta and rope_scaling (transformers 4) or rope_parameters (5). Supports default,
// mrope, linear, dynamic, yarn, longrope and llama3; throws LoadError for other types.
// max_positions: max_position_embeddings. share: as DecoderDefaults::rotary_share.
RotaryConfig read_rotary(const ConfigReader& text, int64_t head_dim, double default_theta,
                         int64_t max_positions, double share = 0);

using CosSin = ops::RotaryAngles;

class Rotary {
 public:
  Rotary() = default;
  Rotary(const RotaryConfig& config, int64_t dim, at::Device device);
  // positions: int64 [axes, T]. lengths: int64 [T], the length that the frequencies of each token
  // follow; undefined if none is above RopeChange::beyond.
  CosSin operator()(const at::Tensor& positions, const at::Tensor& lengths = {}) const;
  // Those of the queries in serving, from those of the keys: RotaryConfig::log_beyond.
  CosSin of_queries(const CosSin& keys, const at::Tensor& positions) const;

 private:
  at::Tensor frequencies(const at::Tensor& lengths) const;

  at::Tensor inv_freq_;       // float [dim / 2]
  at::Tensor long_inv_freq_;  // float [dim / 2], of LongRoPE beyond the change
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
