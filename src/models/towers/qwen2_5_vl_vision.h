// The vision tower of Qwen2.5-VL: Qwen2-VL's with RMSNorm, a gated MLP, and window attention in
// most blocks (transformers: Qwen2_5_VisionTransformerPretrainedModel).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/towers/encoding.h"
#include "models/towers/vision_layers.h"
#include "models/towers/visual_batch.h"

namespace valora::models {

struct Qwen2_5VlVisionConfig {
  int64_t depth = 0, width = 0, heads = 0, mlp = 0, out = 0;
  int64_t channels = 3, patch = 14, temporal_patch = 2, merge = 2;
  int64_t window = 112;              // pixels per side
  std::vector<int64_t> full_blocks;  // blocks that attend to the whole frame
  double tokens_per_second = 4;      // temporal positions per second of video
  Activation activation = Activation::kSilu;
  static int64_t levels() { return 0; }
  double time_positions_per_second() const { return tokens_per_second; }
  int64_t patch_dim() const { return channels * temporal_patch * patch * patch; }
  int64_t window_side() const { return window / merge / patch; }  // in merged patches
};

// An order of patches in which each attention window is contiguous. Windows at the right and lower
// edges are smaller.
struct WindowOrder {
  std::vector<int64_t> order;  // order[i]: index of the merged patch at position i
  std::vector<int64_t> ends;
};
WindowOrder window_order(std::span<const VisualItem> items, int64_t merge, int64_t window_side);

struct Qwen2_5VlVisionBlock {
  RmsNorm norm1, norm2;
  Linear qkv, proj, gate_proj, up_proj, down_proj;
  bool full = false;
};

class Qwen2_5VlVisionTower final : public VisionEncoder {
 public:
  static constexpr char kArchitecture[] = "Qwen2_5_VLForConditionalGeneration";
  static constexpr char kModelType[] = "qwen2_5_vl";
  static constexpr bool kMarksFrames = false;
  using Config = Qwen2_5VlVisionConfig;
  static Config read_config(const ConfigReader& vision);
  static void add_modules(const Config& config, const std::string& prefix,
                          std::vector<adapters::Module>& modules);

  Qwen2_5VlVisionTower(Weights& weights, const adapters::ModuleTable& modules,
                       const std::string& prefix, const Qwen2_5VlVisionConfig& config,
                       at::Device device);

  std::unique_ptr<Encoding> begin(std::vector<VisualItem> items, PieceSize pieces) const override;

 private:
  struct Run;

  std::shared_ptr<Run> make_run(std::vector<VisualItem> items) const;
  void add_block(const Qwen2_5VlVisionBlock& block, const std::shared_ptr<Run>& run,
                 Encoding& encoding) const;

  Qwen2_5VlVisionConfig config_;
  at::Device device_;
  at::ScalarType dtype_;
  Linear patch_embed_;
  std::vector<Qwen2_5VlVisionBlock> blocks_;
  RmsNorm ln_q_;
  PatchMerger merger_;
};

}  // namespace valora::models
