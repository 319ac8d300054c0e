// Frequencies of a rotary embedding under rope types other than the default (transformers:
// modeling_rope_utils.py).
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "models/spec/config_reader.h"
#include "models/spec/model_spec.h"

namespace valora::models {

// Llama 3: wavelengths above original / low_factor are multiplied by `factor`, those below original
// / high_factor are kept, and those in between are interpolated.
struct Llama3Scaling {
  double factor = 1, low_factor = 1, high_factor = 4, original_positions = 8192;
};

// YaRN: frequencies with fewer than beta_slow turns within the original positions are divided by
// `factor`, those with more than beta_fast turns are kept, and those in between are interpolated.
struct YarnScaling {
  double factor = 1, beta_fast = 32, beta_slow = 1, original_positions = 0;
  bool truncate = true;  // round the interpolation bounds to whole indices
};

// Dynamic NTK: in sequences beyond `positions`, theta grows with their length.
struct DynamicScaling {
  double factor = 1;
  int64_t positions = 0;
};

// Dynamic NTK in doublings (Qwen's first models): beyond `positions`, a prompt gets the theta for
// twice as many; beyond twice as many, the theta for four times as many; and so on.
struct DoublingScaling {
  int64_t positions = 0;
  int64_t doublings = 0;  // enough for the model's longest prompt
};

// LongRoPE: each frequency is divided by its own factor; sequences beyond the original positions
// use the long factors.
struct LongRopeScaling {
  std::vector<double> short_factors, long_factors;  // one per frequency
  int64_t original_positions = 0;
  double attention_factor = 1;  // multiplies cosines and sines
};

// The readers throw LoadError. scaling: the rope's own object. text: the configuration that holds
// it. max_positions: its max_position_embeddings.
Llama3Scaling read_llama3(const ConfigReader& scaling, const ConfigReader& text,
                          int64_t max_positions);
// attention_factor: set to the factor of cosines and sines.
YarnScaling read_yarn(const ConfigReader& scaling, const ConfigReader& text, int64_t max_positions,
                      double& attention_factor);
LongRopeScaling read_long_rope(const ConfigReader& scaling, const ConfigReader& text,
                               int64_t max_positions, int64_t head_dim);
DynamicScaling read_dynamic(const ConfigReader& scaling, int64_t max_positions, int64_t head_dim);

// inv_freq: the default frequencies, float [dim / 2].
at::Tensor scaled(const at::Tensor& inv_freq, const Llama3Scaling& scaling);
at::Tensor scaled(const at::Tensor& inv_freq, double theta, const YarnScaling& scaling);
// Per-token frequencies by sequence length, float [T, dim / 2]. lengths: int64 [T].
at::Tensor scaled(const at::Tensor& lengths, double theta, int64_t dim,
                  const DynamicScaling& scaling);
// The frequencies after 0, 1, … doublings, float [1 + doublings, dim / 2].
at::Tensor doubled(double theta, int64_t dim, const DoublingScaling& scaling);
// The row of doubled() for each length, int64 [T].
at::Tensor doublings_of(const at::Tensor& lengths, const DoublingScaling& scaling);
// The unscaled frequencies, each divided by its factor, float [dim / 2].
at::Tensor divided(double theta, const std::vector<double>& factors);

}  // namespace valora::models
