// The resampler of Qwen-VL, the first one: learned queries attend to the patches of a picture.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/encoding.h"
#include "models/vision_layers.h"
#include "models/visual_batch.h"

namespace valora::models {

struct ResamplerConfig {
  int64_t width = 0;                     // of its tokens
  int64_t patch_width = 0, patches = 0;  // per picture
  int64_t queries = 256;                 // tokens per picture; a square
  double norm_eps = 1e-6;
  int64_t heads() const { return width / kHeadSize; }
  bool projects() const { return patch_width != width; }  // else there is no kv_proj
  static constexpr int64_t kHeadSize = 128;
};

// A run of the tower under way. Rows are the patches of all pictures.
struct PatchRun {
  std::vector<VisualItem> items;
  Adaptation adaptation;
  TowerAttention attention;
  at::Tensor x;  // [rows, width], changed in place
};

// prefix: of the tower.
void add_resampler_modules(const ResamplerConfig& config, const std::string& prefix,
                           std::vector<adapters::Module>& modules);
// A square of positions, [n², width], interpolated to `count` ones as the reference does, in the
// dtype of `positions`.
at::Tensor interpolated_positions(const at::Tensor& positions, int64_t count);

class Resampler {
 public:
  Resampler(Weights& weights, const adapters::ModuleTable& modules, const std::string& prefix,
            const ResamplerConfig& config);

  // Appends the stages that make the tokens of the tower's last rows, and the result.
  void add_stages(const std::shared_ptr<PatchRun>& patches, Encoding& encoding) const;

 private:
  // The queries, which depend on no picture: [queries, width].
  at::Tensor queries() const;
  at::Tensor in_projected(const at::Tensor& x, int64_t part) const;
  at::Tensor of_heads(const at::Tensor& x) const {
    return x.view({-1, config_.heads(), ResamplerConfig::kHeadSize});
  }

  ResamplerConfig config_;
  Linear kv_proj_;
  LayerNorm ln_q_, ln_kv_, ln_post_;
  at::Tensor query_, query_positions_;        // [queries, width]
  at::Tensor key_positions_;                  // [patches, width]
  at::Tensor in_proj_weight_, in_proj_bias_;  // of queries, keys and values, [3 width, width]
  Linear out_proj_;
  at::Tensor proj_;  // [width, width], multiplied from the right
};

}  // namespace valora::models
