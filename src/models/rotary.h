// Rotary position embedding with one axis (text) or three (M-RoPE of Qwen2-VL: sections of the
// frequencies use the temporal, height and width positions).
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "models/config_reader.h"

namespace valora::models {

// Llama 3 scaling: wavelengths above original / low_factor are multiplied by `factor`, those below
// original / high_factor are kept, those between are interpolated.
struct Llama3Scaling {
  double factor = 1, low_factor = 1, high_factor = 4, original_positions = 8192;
};

struct RotaryConfig {
  double theta = 10000;
  std::vector<int64_t> sections;  // frequencies per axis; empty: one axis
  double linear_factor = 1;       // divides the positions
  std::optional<Llama3Scaling> llama3;
};

// Reads rope_theta and rope_scaling (transformers 4) or rope_parameters (5). Supports default,
// mrope, linear and llama3; throws LoadError for other types.
RotaryConfig read_rotary(const ConfigReader& text, int64_t head_dim, double default_theta);

struct CosSin {
  at::Tensor cos, sin;  // float [T, dim / 2]
};

class Rotary {
 public:
  Rotary() = default;
  Rotary(const RotaryConfig& config, int64_t dim, at::Device device);
  int axes() const { return axis_of_.defined() ? 3 : 1; }
  CosSin operator()(const at::Tensor& positions) const;  // positions: int64 [axes, T]

 private:
  at::Tensor inv_freq_;  // float [dim / 2]
  at::Tensor axis_of_;   // int64 [dim / 2]
};

}  // namespace valora::models
