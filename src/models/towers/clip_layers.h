// Picture sizes and layers shared by the CLIP and SigLIP towers (transformers: CLIPEncoderLayer,
// SiglipEncoderLayer).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/towers/encoding.h"
#include "models/towers/vision_layers.h"

namespace valora::models {

struct ClipLayerConfig {
  int64_t width = 768, intermediate = 3072, layers = 12, heads = 12;
  double norm_eps = 1e-5;
  Activation activation = Activation::kQuickGelu;
};

struct ClipTowerConfig : ClipLayerConfig {
  int64_t channels = 3, image = 224, patch = 32;
  int64_t side() const { return image / patch; }  // patches per side of the grid of positions
};

// Reads the keys of vision_config; `defaults` fills in missing ones.
ClipTowerConfig read_clip_tower_config(const ConfigReader& vision, const ClipTowerConfig& defaults,
                                       const std::string& activation);
// prefix: the tower's. positions: rows of its position embedding.
void add_clip_tower_modules(const ClipTowerConfig& config, int64_t positions,
                            const std::string& prefix, std::vector<adapters::Module>& modules);

struct ClipLayer {
  LayerNorm layer_norm1, layer_norm2;
  Linear q_proj, k_proj, v_proj, out_proj, fc1, fc2;
};

// The first `depth` layers. The weights of the layers above are not read.
std::vector<ClipLayer> clip_layers(Weights& weights, const adapters::ModuleTable& modules,
                                   const std::string& prefix, const ClipLayerConfig& config,
                                   int64_t depth);

// The hidden states requested from one run of a tower. The input of layer `wanted[i]` (0: the
// embeddings) is in states[i] once its stages have run, [rows, width].
struct TowerStates {
  std::vector<VisualItem> items;
  std::vector<int64_t> wanted;
  std::vector<at::Tensor> states;
  at::TensorOptions options;  // dtype and device of `states`
};

// The working data of a run through the layers.
struct ClipRows : TowerStates {
  Adaptation adaptation;
  TowerAttention attention;
  at::Tensor x;  // [rows, width], modified in place
};

// Stores the state before `layer` if it was requested. last: `layer` is one past the last layer.
void keep_states(const std::shared_ptr<ClipRows>& run, size_t layer, bool last, Encoding& encoding);
// Adds two stages per layer, because a row needs the keys of its whole picture but nothing else
// from other rows. The layers must outlive the encoding.
void add_clip_stages(const std::vector<ClipLayer>& layers, const ClipLayerConfig& config,
                     const std::shared_ptr<ClipRows>& run, Encoding& encoding);

}  // namespace valora::models
