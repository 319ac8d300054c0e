// The vision tower of InternVL (transformers: modeling_internvl.py; InternViT in the remote code of
// older folders): learned positions, a class token per tile, and layers whose outputs are scaled.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "models/towers/encoding.h"
#include "models/towers/vision_layers.h"
#include "models/towers/visual_batch.h"

namespace valora::models {

struct InternVisionConfig {
  int64_t width = 1024, intermediate = 4096, layers = 24, heads = 16;
  int64_t image = 448, patch = 14;
  double norm_eps = 1e-6;
  double head_norm_eps = 1e-6;  // for the query and key norms
  Activation activation = Activation::kGelu;
  bool rms_norm = false;
  bool qk_norm = false;  // over all heads of a row together
  bool qkv_bias = false;
  bool positions = true;
  bool last_norm = false;
  int64_t side() const { return image / patch; }  // patches per side of the grid of positions
};

// The names of a tower's parts. qkv: null if queries, keys and values are three linears.
struct InternVisionNames {
  const char *class_token, *positions, *patches, *layers;
  const char *norm1, *norm2, *attention, *qkv, *out, *scale1, *scale2;
};
extern const InternVisionNames kInternVisionNames, kInternVitNames;

// Read the vision_config of InternVLForConditionalGeneration and of the older InternVLChatModel.
InternVisionConfig read_intern_vision_config(const ConfigReader& vision);
InternVisionConfig read_intern_vit_config(const ConfigReader& vision);
void add_intern_vision_modules(const InternVisionConfig& config, const InternVisionNames& names,
                               const std::string& prefix, std::vector<adapters::Module>& modules);

class InternVisionTower {
 public:
  // depth: number of layers to run. The weights of the layers above are not read.
  InternVisionTower(Weights& weights, const adapters::ModuleTable& modules,
                    const InternVisionNames& names, const std::string& prefix,
                    const InternVisionConfig& config, int64_t depth, at::Device device);

  // A run in progress. Its rows are, for each tile of all items, the class token and then the
  // patches by merge block. Each row attends to its own tile.
  struct Run {
    std::vector<VisualItem> items;
    Adaptation adaptation;
    TowerAttention attention;
    at::Tensor x;          // [rows, width], modified in place
    at::Tensor positions;  // float [rows of a tile, width]: added to every tile
    int64_t tiles = 0, side = 0;
    int64_t rows_of_tile() const { return 1 + side * side; }
  };
  // merge: side of the merge blocks, in patches, by which patches are ordered. Throws c10::Error
  // unless the tiles are squares of equal size.
  std::shared_ptr<Run> begin(std::vector<VisualItem> items, int64_t merge) const;
  // Leaves the last layer's output in run->x, before normalised().
  void add_stages(const std::shared_ptr<Run>& run, Encoding& encoding) const;
  at::Tensor normalised(const at::Tensor& x) const;

 private:
  using Norm = std::variant<LayerNorm, RmsNorm>;
  struct Layer {
    Norm norm1, norm2;
    std::vector<Linear> qkv;  // one or three
    RmsNorm q_norm, k_norm;
    Linear out, fc1, fc2;
    at::Tensor scale1, scale2;  // [width]
  };
  static at::Tensor apply(const Norm& norm, const at::Tensor& x);
  Norm norm(Weights& weights, const std::string& name) const;
  Layer layer(Weights& weights, const adapters::ModuleTable& modules,
              const InternVisionNames& names, const std::string& name) const;
  std::vector<at::Tensor> queries_keys_values(const Layer& layer, const at::Tensor& x,
                                              const Adaptation& adaptation) const;
  void add_layer(const Layer& layer, const std::shared_ptr<Run>& run, Encoding& encoding) const;
  at::Tensor positions(int64_t side, int64_t merge) const;

  InternVisionConfig config_;
  at::Device device_;
  at::ScalarType dtype_;
  at::Tensor class_token_, positions_, patch_bias_;  // positions_: undefined if the tower has none
  Linear patch_embedding_;
  std::vector<Layer> layers_;
  LayerNorm last_norm_;
};

}  // namespace valora::models
