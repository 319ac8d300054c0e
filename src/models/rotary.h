// Rotary position embedding, one axis (text) or several (M-RoPE: sections of the frequencies turn
// with the temporal, height and width positions; Qwen2-VL).
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "models/config_reader.h"

namespace valora::models {

// Llama 3's scaling: wavelengths above original / low_factor grow by `factor`, those below
// original / high_factor stay, those between are blended.
struct Llama3Scaling {
  double factor = 1, low_factor = 1, high_factor = 4, original_positions = 8192;
};

struct RotaryConfig {
  double theta = 10000;
  std::vector<int64_t> sections;  // frequencies an axis; empty: one axis for all
  double linear_factor = 1;       // positions are divided by it
  std::optional<Llama3Scaling> llama3;
};

// rope_theta, rope_scaling (transformers 4) or rope_parameters (5). Kinds: default, mrope, linear,
// llama3; others are refused.
RotaryConfig read_rotary(const ConfigReader& text, int64_t head_dim, double default_theta);

struct CosSin {
  at::Tensor cos, sin;  // float [T, dim / 2]
};

class Rotary {
 public:
  Rotary() = default;
  Rotary(const RotaryConfig& config, int64_t dim, at::Device device);
  int axes() const { return axis_of_.defined() ? 3 : 1; }
  CosSin operator()(const at::Tensor& positions) const;  // [axes, T]

 private:
  at::Tensor inv_freq_;  // float [dim / 2]
  at::Tensor axis_of_;   // int64 [dim / 2]
};

}  // namespace valora::models
