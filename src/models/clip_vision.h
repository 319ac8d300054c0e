// The CLIP vision tower as LLaVA uses it: makes the hidden states of chosen layers (transformers:
// modeling_clip.py, CLIPVisionTransformer without its last norm).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/clip_layers.h"
#include "models/visual_batch.h"

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

  // A run under way. Its hidden states before layer `wanted[i]` (0: the embeddings) are in
  // states[i] once its stages are done, each [items * positions, width].
  struct Run : ClipRows {
    std::vector<VisualItem> items;
    std::vector<int64_t> wanted;
    std::vector<at::Tensor> states;
  };
  std::shared_ptr<Run> begin(std::vector<VisualItem> items, std::vector<int64_t> wanted) const;
  void add_stages(const std::shared_ptr<Run>& run, Encoding& encoding) const;

 private:
  at::Tensor embed(std::span<const VisualItem> items) const;

  ClipVisionConfig config_;
  at::Device device_;
  at::ScalarType dtype_;
  at::Tensor class_embedding_, position_embedding_;
  Linear patch_embedding_;
  LayerNorm pre_layrnorm_;
  std::vector<ClipLayer> layers_;
};

}  // namespace valora::models
