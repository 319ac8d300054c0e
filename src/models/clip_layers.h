// What the towers of CLIP and SigLIP share: the sizes of pictures, and the layers (transformers:
// CLIPEncoderLayer, SiglipEncoderLayer).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/encoding.h"
#include "models/vision_layers.h"

namespace valora::models {

struct ClipLayerConfig {
  int64_t width = 768, intermediate = 3072, layers = 12, heads = 12;
  double norm_eps = 1e-5;
  Activation activation = Activation::kQuickGelu;
};

struct ClipTowerConfig : ClipLayerConfig {
  int64_t channels = 3, image = 224, patch = 32;
  int64_t side() const { return image / patch; }  // patches, of the square of positions
};

// The keys of vision_config; absent ones: `defaults`.
ClipTowerConfig read_clip_tower_config(const ConfigReader& vision, const ClipTowerConfig& defaults,
                                       const std::string& activation);
// prefix: of the tower. positions: rows of its position embedding.
void add_clip_tower_modules(const ClipTowerConfig& config, int64_t positions,
                            const std::string& prefix, std::vector<adapters::Module>& modules);

struct ClipLayer {
  LayerNorm layer_norm1, layer_norm2;
  Linear q_proj, k_proj, v_proj, out_proj, fc1, fc2;
};

// The first `depth` layers. The weights of those above are not read.
std::vector<ClipLayer> clip_layers(Weights& weights, const adapters::ModuleTable& modules,
                                   const std::string& prefix, const ClipLayerConfig& config,
                                   int64_t depth);

// The hidden states that are wanted of a tower's run. Those before layer `wanted[i]` (0: the
// embeddings) are in states[i] once its stages are done, each [rows, width].
struct TowerStates {
  std::vector<VisualItem> items;
  std::vector<int64_t> wanted;
  std::vector<at::Tensor> states;
  at::TensorOptions options;  // of the states
};

// What the layers of a run work on.
struct ClipRows : TowerStates {
  Adaptation adaptation;
  TowerAttention attention;
  at::Tensor x;  // [rows, width], changed in place
};

// Keeps the state before a layer if it is wanted. last: behind all layers.
void keep_states(const std::shared_ptr<ClipRows>& run, size_t layer, bool last, Encoding& encoding);
// Two stages for each layer: a row needs the keys of its picture, and nothing else of other rows.
// The layers must outlive the encoding.
void add_clip_stages(const std::vector<ClipLayer>& layers, const ClipLayerConfig& config,
                     const std::shared_ptr<ClipRows>& run, Encoding& encoding);

}  // namespace valora::models
