// The CLIP vision tower as LLaVA uses it: yields the hidden states of chosen layers (transformers:
// modeling_clip.py, CLIPVisionTransformer without its last norm).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/towers/clip_layers.h"
#include "models/towers/visual_batch.h"

namespace valora::models {

struct ClipVisionConfig : ClipTowerConfig {
  int64_t positions() const { return side() * side() + 1; }  // the first is the class token
};

ClipVisionConfig read_clip_vision_config(const ConfigReader& vision);
void add_clip_vision_modules(const ClipVisionConfig& config, const std::string& prefix,
                             std::vector<adapters::Module>& modules);

class ClipVisionTower {
 public:
  // depth: number of layers to run. The weights of the layers above are not read.
  ClipVisionTower(Weights& weights, const adapters::ModuleTable& modules, const std::string& prefix,
                  const ClipVisionConfig& config, int64_t depth, at::Device device);

  // Adds the stages of a run. Its rows are the patches of all items' tiles, each tile preceded by
  // its class token. Throws c10::Error unless all tiles are of the tower's size.
  std::shared_ptr<TowerStates> begin(std::vector<VisualItem> items, std::vector<int64_t> wanted,
                                     Encoding& encoding) const;

 private:
  // The embeddings of tiles [begin, end).
  at::Tensor embed(std::span<const VisualItem> items, int64_t begin, int64_t end) const;

  ClipVisionConfig config_;
  at::Device device_;
  at::ScalarType dtype_;
  at::Tensor class_embedding_, position_embedding_;
  Linear patch_embedding_;
  LayerNorm pre_layrnorm_;
  std::vector<ClipLayer> layers_;
};

}  // namespace valora::models
