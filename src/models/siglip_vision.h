// The SigLIP vision tower. Idefics3 and SmolVLM give it pictures of any number of patches, whose
// positions are spread over those that the tower was trained with (transformers:
// modeling_idefics3.py, modeling_smolvlm.py); LLaVA-OneVision gives it squares of its own size
// (modeling_siglip.py).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/clip_layers.h"
#include "models/visual_batch.h"

namespace valora::models {

struct SiglipVisionConfig : ClipTowerConfig {
  bool head = false;  // whether the checkpoint has a pooling head, which no family runs
};

// Of Idefics3 and SmolVLM.
SiglipVisionConfig read_siglip_vision_config(const ConfigReader& vision);
// Of SiglipVisionModel.
SiglipVisionConfig read_plain_siglip_config(const ConfigReader& vision);
void add_siglip_vision_modules(const SiglipVisionConfig& config, const std::string& prefix,
                               std::vector<adapters::Module>& modules);

// The places that `count` patches along a side have on one of `side` positions, int64 [count]; in
// floats as transformers 5 computes them, where the rounding may choose the place below.
at::Tensor places_along(int64_t count, int64_t side);

// How a family uses the tower.
struct SiglipUse {
  int64_t depth = 0;    // layers to run; the weights of those above are not read
  int64_t merge = 1;    // the rows are ordered by merge blocks of so many patches a side
  bool squares = true;  // all tiles have the tower's own size
  bool last_norm = false;
};

class SiglipVisionTower {
 public:
  SiglipVisionTower(Weights& weights, const adapters::ModuleTable& modules,
                    const std::string& prefix, const SiglipVisionConfig& config,
                    const SiglipUse& use, at::Device device);

  // Adds the stages of a run. Rows are the patches of all items, by tile and merge block; each
  // attends to its tile. Throws c10::Error for tiles of other sizes than the use's.
  std::shared_ptr<TowerStates> begin(std::vector<VisualItem> items, std::vector<int64_t> wanted,
                                     Encoding& encoding) const;
  // The last norm, of a use that has it.
  at::Tensor normalised(const at::Tensor& x) const { return post_layernorm_(x); }

 private:
  at::Tensor places(std::span<const VisualItem> items) const;  // int64 [rows]

  SiglipVisionConfig config_;
  SiglipUse use_;
  at::Device device_;
  at::ScalarType dtype_;
  at::Tensor position_embedding_, patch_bias_;
  Linear patch_embedding_;
  LayerNorm post_layernorm_;
  std::vector<ClipLayer> layers_;
};

}  // namespace valora::models
