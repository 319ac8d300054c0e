// Rotary position embedding with one axis (text) or three (M-RoPE of Qwen2-VL: sections of the
// frequencies use the temporal, height and width positions).
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <vector>

#include "models/config_reader.h"
#include "models/rope_scaling.h"

namespace valora::models {

struct RotaryConfig {
  double theta = 10000;
  std::vector<int64_t> sections;  // frequencies per axis; empty: one axis
  double linear_factor = 1;       // divides the positions
  double attention_factor = 1;    // multiplies cosines and sines
  std::optional<Llama3Scaling> llama3;
  std::optional<YarnScaling> yarn;
  std::vector<double> short_factors;  // LongRoPE: each divides its frequency
  int64_t max_positions = 0;          // how many positions can be served
  std::string limit;                  // why these are fewer than the model's, if so
};

// Reads rope_theta and rope_scaling (transformers 4) or rope_parameters (5). Supports default,
// mrope, linear, dynamic, yarn, longrope and llama3; throws LoadError for other types.
// max_positions: max_position_embeddings.
RotaryConfig read_rotary(const ConfigReader& text, int64_t head_dim, double default_theta,
                         int64_t max_positions);

struct CosSin {
  at::Tensor cos, sin;  // float [T, dim / 2]
};

class Rotary {
 public:
  Rotary() = default;
  Rotary(const RotaryConfig& config, int64_t dim, at::Device device);
  CosSin operator()(const at::Tensor& positions) const;  // positions: int64 [axes, T]

 private:
  at::Tensor inv_freq_;  // float [dim / 2]
  at::Tensor axis_of_;   // int64 [dim / 2]; undefined: one axis
  double attention_factor_ = 1;
};

}  // namespace valora::models
