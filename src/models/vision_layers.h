// Layers shared by the vision towers.
#pragma once

#include <string>
#include <vector>

#include "models/config_reader.h"
#include "models/layers.h"
#include "models/rotary.h"

namespace valora::models {

// Upper bounds far above any real tower. Products of them do not overflow.
inline constexpr int64_t kMaxVisionWidth = 1 << 20, kMaxVisionSide = 1 << 10;

// The patch embedding: a convolution whose kernel equals its stride, as a linear over flattened
// patches. kernel: the kernel's shape without the output channels.
Linear patch_embedding(Weights& weights, const std::string& name, int64_t width,
                       const std::vector<int64_t>& kernel);

enum class Activation { kQuickGelu, kGelu, kGeluTanh, kSilu };
// Reads an activation by its name in transformers. Throws LoadError, which names `key`, for others.
Activation read_activation(const ConfigReader& config, const std::string& key,
                           const std::string& fallback);
at::Tensor activate(const at::Tensor& x, Activation activation);

// Throws LoadError unless width / heads is a multiple of 4, as 2-D rotary positions require.
void check_rotary_heads(const ConfigReader& vision, int64_t width, int64_t heads);
// Attention of each token to the tokens of its block [ends[i-1], ends[i]). qkv: [T, 3 * width], q,
// k and v side by side; q and k are rotated in place. Returns [T, width].
at::Tensor fused_qkv_attention(const at::Tensor& qkv, int64_t heads, const CosSin& rotary,
                               const std::vector<int64_t>& ends);

// The last stage of the Qwen towers: merges merge² adjacent patches into one token (transformers:
// PatchMerger.mlp).
class PatchMerger {
 public:
  PatchMerger(Weights& weights, const adapters::ModuleTable& modules, const std::string& name);
  // x: [patches, width], after the norm. adaptation: segments in rows of merged patches. Returns
  // [patches / merge², out].
  at::Tensor operator()(const at::Tensor& x, const Adaptation& adaptation) const;

 private:
  Linear mlp0_, mlp2_;
};
// Appends the two modules of a PatchMerger.
void add_patch_merger_modules(const std::string& name, int64_t width, int64_t merge, int64_t out,
                              std::vector<adapters::Module>& modules);

}  // namespace valora::models
