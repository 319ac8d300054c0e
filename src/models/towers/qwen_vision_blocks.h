// The blocks of the vision towers of Qwen2-VL and Qwen3-VL: attention of all patches of a frame,
// with 2-D rotary positions, then an MLP of two linears.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/towers/encoding.h"
#include "models/towers/vision_layers.h"
#include "models/towers/visual_batch.h"

namespace valora::models {

constexpr double kQwenVisionNormEps = 1e-6;

struct QwenVisionBlock {
  LayerNorm norm1, norm2;
  Linear qkv, proj, fc1, fc2;
};

// The block stored under `prefix`, whose MLP's linears have these names.
QwenVisionBlock read_qwen_vision_block(Weights& weights, const adapters::ModuleTable& modules,
                                       const std::string& prefix, int64_t width, const char* fc1,
                                       const char* fc2);

// What the stages of an encoding share.
struct QwenVisionRun {
  std::vector<VisualItem> items;
  QwenVisionRows rows;
  CosSin angles;
  TowerAttention attention;
  at::Tensor x;       // [patches, width]
  at::Tensor merged;  // [tokens, columns of the result]
};

// Adds the block's stages, which change run->x. The block must outlive the encoding.
void add_qwen_vision_block(const QwenVisionBlock& block, Activation activation,
                           const std::shared_ptr<QwenVisionRun>& run, Encoding& encoding);

}  // namespace valora::models
