// The resampler of the first Qwen-VL: learned queries attend to the patches of a picture.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/towers/encoding.h"
#include "models/towers/vision_layers.h"
#include "models/towers/visual_batch.h"

namespace valora::models {

struct ResamplerConfig {
  int64_t width = 0;                     // width of the resampler's tokens
  int64_t patch_width = 0, patches = 0;  // per picture
  int64_t queries = 256;                 // tokens per picture; a square number
  double norm_eps = 1e-6;
  int64_t heads() const { return width / kHeadSize; }
  bool projects() const { return patch_width != width; }  // if false, there is no kv_proj
  static constexpr int64_t kHeadSize = 128;
};

// A run of the tower in progress. Rows are the patches of all pictures.
struct PatchRun {
  std::vector<VisualItem> items;
  Adaptation adaptation;
  TowerAttention attention;
  at::Tensor x;  // [rows, width], modified in place
};

// prefix: the tower's.
void add_resampler_modules(const ResamplerConfig& config, const std::string& prefix,
                           std::vector<adapters::Module>& modules);
// A square grid of positions, [n², width], interpolated to `count` positions as in the reference,
// in the dtype of `positions`.
at::Tensor interpolated_positions(const at::Tensor& positions, int64_t count);

class Resampler {
 public:
  Resampler(Weights& weights, const adapters::ModuleTable& modules, const std::string& prefix,
            const ResamplerConfig& config);

  // Appends the stages that resample the tower's output rows into tokens, and sets the result.
  void add_stages(const std::shared_ptr<PatchRun>& patches, Encoding& encoding) const;

 private:
  // [queries, width], the same for every picture.
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
  at::Tensor in_proj_weight_, in_proj_bias_;  // for queries, keys and values, [3 width, width]
  Linear out_proj_;
  at::Tensor proj_;  // [width, width]; the right-hand operand, not transposed
};

}  // namespace valora::models
