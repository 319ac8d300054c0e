// The vision tower of Qwen2-VL: patches → blocks with 2-D rotary positions → merged tokens
// (transformers: Qwen2VisionTransformerPretrainedModel).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/towers/encoding.h"
#include "models/towers/qwen_vision_blocks.h"

namespace valora::models {

struct Qwen2VlVisionConfig {
  int64_t depth = 0, width = 0, heads = 0, mlp = 0, out = 0;
  int64_t channels = 3, patch = 14, temporal_patch = 2, merge = 2;
  Activation activation = Activation::kQuickGelu;
  static int64_t levels() { return 0; }
  double time_positions_per_second() const { return 0; }  // 0: one position per temporal patch
  int64_t patch_dim() const { return channels * temporal_patch * patch * patch; }
};

class Qwen2VlVisionTower final : public VisionEncoder {
 public:
  static constexpr char kArchitecture[] = "Qwen2VLForConditionalGeneration";
  static constexpr char kModelType[] = "qwen2_vl";
  static constexpr bool kMarksFrames = false;
  using Config = Qwen2VlVisionConfig;
  static Config read_config(const ConfigReader& vision);
  static void add_modules(const Config& config, const std::string& prefix,
                          std::vector<adapters::Module>& modules);

  Qwen2VlVisionTower(Weights& weights, const adapters::ModuleTable& modules,
                     const std::string& prefix, const Qwen2VlVisionConfig& config,
                     at::Device device);

  std::unique_ptr<Encoding> begin(std::vector<VisualItem> items, PieceSize pieces) const override;

 private:
  Qwen2VlVisionConfig config_;
  at::Device device_;
  at::ScalarType dtype_;
  Linear patch_embed_;
  std::vector<QwenVisionBlock> blocks_;
  LayerNorm ln_q_;
  PatchMerger merger_;
};

}  // namespace valora::models
