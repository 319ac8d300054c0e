// The vision tower of the first Qwen-VL: OpenCLIP's ViT without a class token, with interpolated
// learned positions, and a resampler that turns each picture into a fixed number of tokens
// (visual.py in its folders' remote code).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/towers/encoding.h"
#include "models/towers/qwen1_resampler.h"

namespace valora::models {

struct Qwen1VisionConfig {
  int64_t width = 0, intermediate = 0, layers = 0, heads = 0;
  int64_t image = 0, patch = 0;
  ResamplerConfig resampler;
  int64_t side() const { return image / patch; }
};

// visual: the part of config.json with that name. Throws LoadError.
Qwen1VisionConfig read_qwen1_vision_config(const ConfigReader& visual);
void add_qwen1_vision_modules(const Qwen1VisionConfig& config, const std::string& prefix,
                              std::vector<adapters::Module>& modules);

class Qwen1VisionTower final : public VisionEncoder {
 public:
  Qwen1VisionTower(Weights& weights, const adapters::ModuleTable& modules,
                   const std::string& prefix, const Qwen1VisionConfig& config, at::Device device);

  // Throws c10::Error unless all pictures are of the tower's size.
  std::unique_ptr<Encoding> begin(std::vector<VisualItem> items, PieceSize pieces) const override;

 private:
  struct Layer {
    LayerNorm ln_1, ln_2;
    Linear in_proj, out_proj, c_fc, c_proj;  // in_proj: query, key and value per head
  };
  void add_layer(const Layer& layer, const std::shared_ptr<PatchRun>& run,
                 Encoding& encoding) const;

  Qwen1VisionConfig config_;
  at::Device device_;
  at::ScalarType dtype_;
  Linear conv1_;
  at::Tensor positions_;  // [patches, width]
  LayerNorm ln_pre_;
  std::vector<Layer> layers_;
  Resampler resampler_;
};

}  // namespace valora::models
