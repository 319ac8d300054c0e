// The SigLIP vision tower. Idefics3 and SmolVLM use it for pictures of any number of patches,
// spread over the positions it was trained with (transformers: modeling_idefics3.py,
// modeling_smolvlm.py); LLaVA-OneVision uses it for squares of the tower's own size
// (modeling_siglip.py).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/towers/clip_layers.h"
#include "models/towers/visual_batch.h"

namespace valora::models {

struct SiglipVisionConfig : ClipTowerConfig {
  bool head = false;  // whether the checkpoint has a pooling head; no family runs it
};

// Reads the vision_config of Idefics3 and SmolVLM.
SiglipVisionConfig read_siglip_vision_config(const ConfigReader& vision);
// Reads the vision_config of a SiglipVisionModel.
SiglipVisionConfig read_plain_siglip_config(const ConfigReader& vision);
void add_siglip_vision_modules(const SiglipVisionConfig& config, const std::string& prefix,
                               std::vector<adapters::Module>& modules);

// Maps `count` patches along a side to positions along a side of `side`, int64 [count]. Computed in
// float as in transformers 5, where rounding may select the position below.
at::Tensor places_along(int64_t count, int64_t side);

// How a family uses the tower.
struct SiglipUse {
  int64_t depth = 0;    // layers to run; the weights of the layers above are not read
  int64_t merge = 1;    // side, in patches, of the merge blocks by which rows are ordered
  bool squares = true;  // all tiles have the tower's own size
  bool last_norm = false;
};

class SiglipVisionTower {
 public:
  SiglipVisionTower(Weights& weights, const adapters::ModuleTable& modules,
                    const std::string& prefix, const SiglipVisionConfig& config,
                    const SiglipUse& use, at::Device device);

  // Adds the stages of a run. Rows are the patches of all items, by tile and merge block; each
  // attends to its own tile. Throws c10::Error if tile sizes do not fit the use.
  std::shared_ptr<TowerStates> begin(std::vector<VisualItem> items, std::vector<int64_t> wanted,
                                     Encoding& encoding) const;
  // Applies the final norm, for uses that have it.
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
