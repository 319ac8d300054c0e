// The vision tower of Pixtral and Mistral 3 (transformers: modeling_pixtral.py): pictures of any
// number of patches, 2-D rotary positions, gated MLPs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/towers/clip_layers.h"
#include "models/towers/visual_batch.h"

namespace valora::models {

struct PixtralVisionConfig : ClipTowerConfig {
  double theta = 10000;
};

PixtralVisionConfig read_pixtral_vision_config(const ConfigReader& vision);
void add_pixtral_vision_modules(const PixtralVisionConfig& config, const std::string& prefix,
                                std::vector<adapters::Module>& modules);

struct PixtralLayer {
  RmsNorm attention_norm, ffn_norm;
  Linear q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj;
};

class PixtralVisionTower {
 public:
  // depth: number of layers to run. The weights of the layers above are not read. merge: side, in
  // patches, of the merge blocks by which rows are ordered.
  PixtralVisionTower(Weights& weights, const adapters::ModuleTable& modules,
                     const std::string& prefix, const PixtralVisionConfig& config, int64_t depth,
                     int64_t merge, at::Device device);

  // Adds the stages of a run. Rows are the patches of all items; each attends to its own picture.
  std::shared_ptr<TowerStates> begin(std::vector<VisualItem> items, std::vector<int64_t> wanted,
                                     Encoding& encoding) const;

 private:
  struct Rows;
  CosSin angles(std::span<const VisualItem> items) const;
  void add_layer(const PixtralLayer& layer, const std::shared_ptr<Rows>& run,
                 Encoding& encoding) const;

  PixtralVisionConfig config_;
  int64_t merge_;
  at::Device device_;
  at::ScalarType dtype_;
  Linear patch_conv_;
  RmsNorm ln_pre_;
  std::vector<PixtralLayer> layers_;
};

}  // namespace valora::models
