// The SigLIP vision tower as Idefics3 and SmolVLM use it: pictures of any number of patches, whose
// positions are spread over those that the tower was trained with (transformers:
// modeling_idefics3.py, modeling_smolvlm.py).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/clip_layers.h"
#include "models/visual_batch.h"

namespace valora::models {

using SiglipVisionConfig = ClipTowerConfig;

SiglipVisionConfig read_siglip_vision_config(const ConfigReader& vision);
void add_siglip_vision_modules(const SiglipVisionConfig& config, const std::string& prefix,
                               std::vector<adapters::Module>& modules);

// The places that `count` patches along a side have on one of `side` positions, int64 [count]; in
// floats as transformers 5 computes them, where the rounding may choose the place below.
at::Tensor places_along(int64_t count, int64_t side);

class SiglipVisionTower {
 public:
  SiglipVisionTower(Weights& weights, const adapters::ModuleTable& modules,
                    const std::string& prefix, const SiglipVisionConfig& config, at::Device device);

  // A run under way. Rows are the patches of all items, by tile and merge block; each attends to
  // its tile.
  struct Run : ClipRows {
    std::vector<VisualItem> items;
    at::Tensor places;  // int64 [rows]
  };
  // merge: the rows are ordered by merge blocks of so many patches a side.
  std::shared_ptr<Run> begin(std::vector<VisualItem> items, int64_t merge) const;
  // Leaves the last layer's output in run->x, before normalised().
  void add_stages(const std::shared_ptr<Run>& run, Encoding& encoding) const;
  // The last norm.
  at::Tensor normalised(const at::Tensor& x) const { return post_layernorm_(x); }

 private:
  SiglipVisionConfig config_;
  at::Device device_;
  at::ScalarType dtype_;
  at::Tensor position_embedding_, patch_bias_;
  Linear patch_embedding_;
  LayerNorm post_layernorm_;
  std::vector<ClipLayer> layers_;
};

}  // namespace valora::models
