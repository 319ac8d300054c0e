// The vision tower of Qwen3-VL: patches with learned positions → blocks with 2-D rotary positions →
// merged tokens. Merged outputs of some inner blocks go to the decoder's first layers ("deepstack"
// in transformers: Qwen3VLVisionModel).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "media/processors/processor.h"
#include "models/towers/encoding.h"
#include "models/towers/qwen_vision_blocks.h"

namespace valora::models {

struct Qwen3VlVisionConfig {
  int64_t depth = 0, width = 0, heads = 0, mlp = 0, out = 0;
  int64_t channels = 3, patch = 16, temporal_patch = 2, merge = 2;
  int64_t side = 0;  // side of the square grid of learned positions
  // Blocks, ascending, whose merged outputs are added to the outputs of decoder layers 0, 1, …
  std::vector<int64_t> deep;
  Activation activation = Activation::kGeluTanh;
  int64_t patch_dim() const { return channels * temporal_patch * patch * patch; }
  int64_t levels() const { return static_cast<int64_t>(deep.size()); }
  static double time_positions_per_second() { return 0; }
};

// The positions of patches on the grid of learned positions: each patch's four neighbours and their
// bilinear weights. A picture's corner patches map to the grid's corners.
struct SquarePlaces {
  at::Tensor index;   // int64 [4, patches], in the order of the tower's rows
  at::Tensor weight;  // float [4, patches]
};
SquarePlaces square_places(std::span<const VisualItem> items, int64_t merge, int64_t side,
                           at::Device device);

// Merges merge² adjacent patches into one token. The norm is over a single patch or over the merged
// ones.
struct Qwen3VlMerger {
  LayerNorm norm;
  bool norm_of_merged = false;
  Linear fc1, fc2;
  // x: [patches, width] → [patches / merge², out]
  at::Tensor operator()(const at::Tensor& x, const Adaptation& adaptation) const;
};

class Qwen3VlVisionTower : public VisionEncoder {
 public:
  static constexpr char kArchitecture[] = "Qwen3VLForConditionalGeneration";
  static constexpr char kModelType[] = "qwen3_vl";
  static constexpr bool kMarksFrames = true;
  using Config = Qwen3VlVisionConfig;
  // deepstack: whether block outputs go to decoder layers.
  static Config read_config(const ConfigReader& vision, bool deepstack = true);
  static void add_modules(const Config& config, const std::string& prefix,
                          std::vector<adapters::Module>& modules);

  Qwen3VlVisionTower(Weights& weights, const adapters::ModuleTable& modules,
                     const std::string& prefix, const Qwen3VlVisionConfig& config,
                     at::Device device);

  // Yields embeddings of out * (1 + levels()) columns, as in VisualRows.
  std::unique_ptr<Encoding> begin(std::vector<VisualItem> items, PieceSize pieces) const override;

 private:
  struct Run;

  void add_merger(const Qwen3VlMerger& merger, int64_t column, const std::shared_ptr<Run>& run,
                  Encoding& encoding) const;
  // The learned positions of patches [begin, end), float [end - begin, width].
  at::Tensor positions(const SquarePlaces& places, int64_t begin, int64_t end) const;

  Qwen3VlVisionConfig config_;
  at::Device device_;
  at::ScalarType dtype_;
  Linear patch_embed_;
  at::Tensor patch_bias_;  // [width]
  at::Tensor pos_embed_;   // [side², width]
  std::vector<QwenVisionBlock> blocks_;
  Qwen3VlMerger merger_;
  std::vector<Qwen3VlMerger> deep_mergers_;
};

// The image processor of a family with this tower; see Family::processor.
template <typename Tower>
Result<std::shared_ptr<const media::Processor>> read_qwen3_vl_processor(
    const ConfigReader& config, const media::ProcessorFiles& files) {
  const auto vision = Tower::read_config(config.child("vision_config"));
  return media::make_qwen3_vl_processor(
      files.image, files.video,
      {static_cast<int>(vision.patch), static_cast<int>(vision.temporal_patch),
       static_cast<int>(vision.merge)});
}

}  // namespace valora::models
