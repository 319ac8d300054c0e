#include "models/clip_vision.h"

#include "models/table_linear.h"
#include "ops/attention.h"

namespace valora::models {

ClipVisionConfig read_clip_vision_config(const ConfigReader& vision) {
  ClipVisionConfig c;
  if (const std::string type = vision.text("model_type", "clip_vision_model");
      type != "clip_vision_model")
    vision.refuse("a vision tower of type \"" + type +
                  "\" is not supported, only clip_vision_model");
  c.width = vision.at_most("hidden_size", kMaxVisionWidth, c.width);
  c.intermediate = vision.at_most("intermediate_size", kMaxVisionWidth, c.intermediate);
  c.layers = vision.at_most("num_hidden_layers", kMaxLayers, c.layers);
  c.heads = vision.integer("num_attention_heads", c.heads);
  c.channels = vision.at_most("num_channels", kMaxVisionSide, c.channels);
  c.image = vision.at_most("image_size", 1 << 13, c.image);
  c.patch = vision.at_most("patch_size", kMaxVisionSide, c.patch);
  c.norm_eps = vision.number("layer_norm_eps", c.norm_eps);
  c.activation = read_activation(vision, "hidden_act", "quick_gelu");
  if (c.width % c.heads != 0)
    vision.refuse(
        "the vision tower's \"hidden_size\" is not a multiple of its \"num_attention_heads\"");
  if (c.channels != 3) vision.refuse("\"num_channels\" must be 3");
  if (c.patch > c.image)
    vision.refuse("the vision tower's \"patch_size\" exceeds its \"image_size\"");
  return c;
}

void add_clip_vision_modules(const ClipVisionConfig& c, const std::string& prefix,
                             std::vector<adapters::Module>& modules) {
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = prefix + "encoder.layers." + std::to_string(i) + ".";
    for (const char* name : {"k_proj", "v_proj", "q_proj", "out_proj"})
      modules.push_back({layer + "self_attn." + name, c.width, c.width, true, i, true});
    modules.push_back({layer + "mlp.fc1", c.width, c.intermediate, true, i, true});
    modules.push_back({layer + "mlp.fc2", c.intermediate, c.width, true, i, true});
  }
  modules.push_back({prefix + "embeddings.patch_embedding", c.channels * c.patch * c.patch, c.width,
                     false, -1, true});
  modules.push_back(
      {prefix + "embeddings.position_embedding", c.positions(), c.width, false, -1, true});
}

ClipVisionTower::ClipVisionTower(Weights& weights, const adapters::ModuleTable& modules,
                                 const std::string& prefix, const ClipVisionConfig& c,
                                 int64_t depth, at::Device device)
    : config_(c),
      device_(device),
      dtype_(weights.dtype()),
      class_embedding_(weights.get(prefix + "embeddings.class_embedding", {c.width})),
      position_embedding_(
          weights.get(prefix + "embeddings.position_embedding.weight", {c.positions(), c.width})),
      patch_embedding_(patch_embedding(weights, prefix + "embeddings.patch_embedding", c.width,
                                       {c.channels, c.patch, c.patch})),
      pre_layrnorm_(weights, prefix + "pre_layrnorm", c.width, c.norm_eps) {
  for (int64_t i = 0; i < depth; ++i) {
    const std::string layer = prefix + "encoder.layers." + std::to_string(i) + ".";
    const auto linear = [&](const char* name) {
      return table_linear(weights, modules, layer + name, true);
    };
    layers_.push_back({LayerNorm(weights, layer + "layer_norm1", c.width, c.norm_eps),
                       LayerNorm(weights, layer + "layer_norm2", c.width, c.norm_eps),
                       linear("self_attn.q_proj"), linear("self_attn.k_proj"),
                       linear("self_attn.v_proj"), linear("self_attn.out_proj"), linear("mlp.fc1"),
                       linear("mlp.fc2")});
  }
  for (int64_t i = depth; i < c.layers; ++i)
    weights.leave_out(prefix + "encoder.layers." + std::to_string(i) + ".");
  weights.leave_out(prefix + "post_layernorm.");
  weights.leave_out(prefix + "embeddings.position_ids");
}

at::Tensor ClipVisionTower::embed(std::span<const VisualItem> items) const {
  const int64_t n = static_cast<int64_t>(items.size());
  const at::Tensor patches = patch_embedding_(
      patch_rows(items, config_.channels * config_.patch * config_.patch, dtype_, device_));
  const at::Tensor classes = class_embedding_.expand({n, 1, config_.width});
  const at::Tensor x =
      at::cat({classes, patches.view({n, -1, config_.width})}, 1) + position_embedding_;
  return x.reshape({n * config_.positions(), config_.width});
}

at::Tensor ClipVisionTower::run(const ClipVisionLayer& layer, at::Tensor x,
                                const std::vector<int64_t>& ends,
                                const Adaptation& adaptation) const {
  const auto heads = [&](const at::Tensor& y) {
    return y.view({-1, config_.heads, config_.width / config_.heads});
  };
  const at::Tensor normed = layer.layer_norm1(x);
  const auto qkv = project(normed, {&layer.q_proj, &layer.k_proj, &layer.v_proj}, adaptation);
  const at::Tensor attended =
      ops::block_attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), ends);
  x = x + layer.out_proj(attended, adaptation);
  return x + layer.fc2(activate(layer.fc1(layer.layer_norm2(x), adaptation), config_.activation),
                       adaptation);
}

std::vector<at::Tensor> ClipVisionTower::operator()(std::span<const VisualItem> items,
                                                    std::span<const int64_t> states) const {
  const std::vector<int64_t> rows(items.size(), config_.positions());
  const Adaptation adaptation = item_adaptation(items, rows);
  std::vector<int64_t> ends;
  for (size_t i = 1; i <= items.size(); ++i)
    ends.push_back(static_cast<int64_t>(i) * config_.positions());
  std::vector<at::Tensor> found(states.size());
  at::Tensor x = pre_layrnorm_(embed(items));
  for (size_t depth = 0;; ++depth) {
    for (size_t i = 0; i < states.size(); ++i)
      if (states[i] == static_cast<int64_t>(depth)) found[i] = x;
    if (depth == layers_.size()) return found;
    x = run(layers_[depth], x, ends, adaptation);
  }
}

}  // namespace valora::models
