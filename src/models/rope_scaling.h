// How rope types other than the default change the frequencies of a rotary embedding
// (transformers: modeling_rope_utils.py).
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "models/config_reader.h"

namespace valora::models {

// Llama 3: wavelengths above original / low_factor are multiplied by `factor`, those below
// original / high_factor are kept, those between are interpolated.
struct Llama3Scaling {
  double factor = 1, low_factor = 1, high_factor = 4, original_positions = 8192;
};

// YaRN: frequencies with fewer than beta_slow turns within the original positions are divided by
// `factor`, those with more than beta_fast turns are kept, those between are interpolated.
struct YarnScaling {
  double factor = 1, beta_fast = 32, beta_slow = 1, original_positions = 0;
  bool truncate = true;  // the bounds of the interpolation are whole frequencies
};

// LongRoPE: each frequency is divided by its own factor. Sequences beyond the original positions
// have other factors.
struct LongRopeScaling {
  std::vector<double> short_factors;  // one per frequency
  int64_t original_positions = 0;
  double attention_factor = 1;  // multiplies cosines and sines
};

// The readers throw LoadError. scaling: the rope's own object. text: the configuration that holds
// it. max_positions: its max_position_embeddings.
Llama3Scaling read_llama3(const ConfigReader& scaling, const ConfigReader& text,
                          int64_t max_positions);
// attention_factor: what cosines and sines are multiplied by.
YarnScaling read_yarn(const ConfigReader& scaling, const ConfigReader& text, int64_t max_positions,
                      double& attention_factor);
LongRopeScaling read_long_rope(const ConfigReader& scaling, const ConfigReader& text,
                               int64_t max_positions, int64_t head_dim);

// inv_freq: the default frequencies, float [dim / 2].
at::Tensor scaled(const at::Tensor& inv_freq, const Llama3Scaling& scaling);
at::Tensor scaled(const at::Tensor& inv_freq, double theta, const YarnScaling& scaling);

}  // namespace valora::models
