// Qwen2-VL's vision tower: patches → blocks with 2-D rotary positions → merged tokens.
#pragma once

#include <string>
#include <vector>

#include "media/processor.h"
#include "models/config_reader.h"
#include "models/layers.h"
#include "models/rotary.h"

namespace valora::models {

struct Qwen2VlVisionConfig {
  int64_t depth = 0, width = 0, heads = 0, mlp = 0, out = 0;
  int64_t channels = 3, patch = 14, temporal_patch = 2, merge = 2;
  std::string activation;  // quick_gelu, gelu or silu
  int64_t patch_dim() const { return channels * temporal_patch * patch * patch; }
};

Qwen2VlVisionConfig read_qwen2_vl_vision_config(const ConfigReader& vision);
void add_qwen2_vl_vision_modules(const Qwen2VlVisionConfig& config, const std::string& prefix,
                                 std::vector<adapters::Module>& modules);

struct Qwen2VlVisionBlock {
  LayerNorm norm1, norm2;
  Linear qkv, proj, fc1, fc2;
};

class Qwen2VlVisionTower {
 public:
  Qwen2VlVisionTower(Weights& weights, const std::string& prefix, const Qwen2VlVisionConfig& config, at::Device device);

  at::Tensor operator()(const media::VisualInput& input) const;  // [input.tokens, out]

 private:
  CosSin rotary(const media::VisualInput& input) const;
  at::Tensor attend(const Qwen2VlVisionBlock& block, const at::Tensor& x, const CosSin& rotary,
                    const std::vector<int64_t>& frames) const;
  at::Tensor activate(const at::Tensor& x) const;

  Qwen2VlVisionConfig config_;
  at::Device device_;
  at::ScalarType dtype_ = at::kFloat;
  Linear patch_embed_;
  std::vector<Qwen2VlVisionBlock> blocks_;
  LayerNorm ln_q_;
  Linear mlp0_, mlp2_;
};

}  // namespace valora::models
