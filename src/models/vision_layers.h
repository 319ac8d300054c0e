// What the vision towers share.
#pragma once

#include <string>
#include <vector>

#include "models/config_reader.h"
#include "models/layers.h"
#include "models/rotary.h"

namespace valora::models {

// No tower comes near these; products of them do not overflow.
inline constexpr int64_t kMaxVisionWidth = 1 << 20, kMaxVisionSide = 1 << 10;

// A convolution whose kernel equals its stride is a product over flattened patches.
// kernel: the convolution's shape behind the output channels.
Linear patch_embedding(Weights& weights, const std::string& name, int64_t width,
                       const std::vector<int64_t>& kernel);

enum class Activation { kQuickGelu, kGelu, kGeluTanh, kSilu };
// transformers' name of an activation; refuses others by `key`.
Activation read_activation(const ConfigReader& config, const std::string& key,
                           const std::string& fallback);
at::Tensor activate(const at::Tensor& x, Activation activation);

// Heads of width / heads values, turned in two halves of pairs: their size must be a multiple of 4.
void check_rotary_heads(const ConfigReader& vision, int64_t width, int64_t heads);
// qkv: [T, 3 * width], q, k and v side by side → attention within [ends[i-1], ends[i]): [T, width].
at::Tensor fused_qkv_attention(const at::Tensor& qkv, int64_t heads, const CosSin& rotary,
                               const std::vector<int64_t>& ends);

// The Qwen towers' end: merge² normed patches side by side become one token
// (Qwen2VLPatchMerger.mlp).
class PatchMerger {
 public:
  PatchMerger(Weights& weights, const adapters::ModuleTable& modules, const std::string& name);
  // x: [patches, width], normed; adaptation in merged rows. → [patches / merge², out]
  at::Tensor operator()(const at::Tensor& x, const Adaptation& adaptation) const;

 private:
  Linear mlp0_, mlp2_;
};
// Its two modules.
void add_patch_merger_modules(const std::string& name, int64_t width, int64_t merge, int64_t out,
                              std::vector<adapters::Module>& modules);

}  // namespace valora::models
