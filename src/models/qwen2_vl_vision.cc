#include "models/qwen2_vl_vision.h"

#include "models/table_linear.h"

namespace valora::models {
namespace {

constexpr double kLayerNormEps = 1e-6;

}  // namespace

Qwen2VlVisionConfig Qwen2VlVisionTower::read_config(const ConfigReader& vision) {
  Config c;
  c.depth = vision.at_most("depth", kMaxLayers, 32);
  c.width = vision.at_most("embed_dim", kMaxVisionWidth, 1280);
  c.heads = vision.integer("num_heads", 16);
  c.out = vision.integer("hidden_size", 3584);
  c.patch = vision.at_most("patch_size", kMaxVisionSide, 14);
  c.temporal_patch = vision.at_most("temporal_patch_size", kMaxVisionSide, 2);
  c.merge = vision.at_most("spatial_merge_size", kMaxVisionSide, 2);
  const double ratio = vision.number("mlp_ratio", 4);
  if (!(ratio * static_cast<double>(c.width) >= 1 && ratio <= kMaxVisionSide))
    vision.refuse("\"mlp_ratio\" is out of range");
  c.mlp = static_cast<int64_t>(static_cast<double>(c.width) * ratio);
  c.activation = read_activation(vision, "hidden_act", "quick_gelu");
  if (vision.integer("in_channels", c.channels) != c.channels)
    vision.refuse("\"in_channels\" must be 3");
  check_rotary_heads(vision, c.width, c.heads);
  return c;
}

void Qwen2VlVisionTower::add_modules(const Config& c, const std::string& prefix,
                                     std::vector<adapters::Module>& modules) {
  for (int64_t i = 0; i < c.depth; ++i) {
    const std::string block = prefix + "blocks." + std::to_string(i) + ".";
    modules.push_back({block + "attn.qkv", c.width, 3 * c.width, true, i, true});
    modules.push_back({block + "attn.proj", c.width, c.width, true, i, true});
    modules.push_back({block + "mlp.fc1", c.width, c.mlp, true, i, true});
    modules.push_back({block + "mlp.fc2", c.mlp, c.width, true, i, true});
  }
  add_patch_merger_modules(prefix + "merger", c.width, c.merge, c.out, modules);
  modules.push_back({prefix + "patch_embed.proj", c.patch_dim(), c.width, false, -1, true});
}

Qwen2VlVisionTower::Qwen2VlVisionTower(Weights& weights, const adapters::ModuleTable& modules,
                                       const std::string& prefix, const Qwen2VlVisionConfig& c,
                                       at::Device device)
    : config_(c),
      device_(device),
      dtype_(weights.dtype()),
      patch_embed_(patch_embedding(weights, prefix + "patch_embed.proj", c.width,
                                   {c.channels, c.temporal_patch, c.patch, c.patch})),
      ln_q_(weights, prefix + "merger.ln_q", c.width, kLayerNormEps),
      merger_(weights, modules, prefix + "merger") {
  for (int64_t i = 0; i < c.depth; ++i) {
    const std::string block = prefix + "blocks." + std::to_string(i) + ".";
    const auto linear = [&](const char* name) {
      return table_linear(weights, modules, block + name, true);
    };
    blocks_.push_back({LayerNorm(weights, block + "norm1", c.width, kLayerNormEps),
                       LayerNorm(weights, block + "norm2", c.width, kLayerNormEps),
                       linear("attn.qkv"), linear("attn.proj"), linear("mlp.fc1"),
                       linear("mlp.fc2")});
  }
}

std::vector<at::Tensor> Qwen2VlVisionTower::operator()(std::span<const VisualItem> items) const {
  const QwenVisionRows rows = qwen_vision_rows(items, config_.merge);
  const CosSin angles = patch_rotary(items, config_.merge, config_.width / config_.heads, device_);
  const std::vector<int64_t> frames = frame_ends(items);
  at::Tensor x = patch_embed_(patch_rows(items, config_.patch_dim(), dtype_, device_));
  for (const Qwen2VlVisionBlock& block : blocks_) {
    const at::Tensor qkv = block.qkv(block.norm1(x), rows.patch_adaptation);
    x = x +
        block.proj(fused_qkv_attention(qkv, config_.heads, angles, frames), rows.patch_adaptation);
    x = x +
        block.fc2(activate(block.fc1(block.norm2(x), rows.patch_adaptation), config_.activation),
                  rows.patch_adaptation);
  }
  return split_items(merger_(ln_q_(x), rows.token_adaptation), rows.tokens);
}

}  // namespace valora::models
