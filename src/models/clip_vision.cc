#include "models/clip_vision.h"

#include "models/table_linear.h"

namespace valora::models {

ClipVisionConfig read_clip_vision_config(const ConfigReader& vision) {
  ClipVisionConfig c;
  vision.refuse_changed_layers();
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
      modules.push_back({layer + "self_attn." + name, c.width, c.width, i, true});
    modules.push_back({layer + "mlp.fc1", c.width, c.intermediate, i, true});
    modules.push_back({layer + "mlp.fc2", c.intermediate, c.width, i, true});
  }
  modules.push_back({prefix + "embeddings.patch_embedding", c.channels * c.patch * c.patch, c.width,
                     -1, true, adapters::ModuleKind::kOther});
  modules.push_back({prefix + "embeddings.position_embedding", c.positions(), c.width, -1, true,
                     adapters::ModuleKind::kOther});
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
  const int64_t n = static_cast<int64_t>(items.size()), patches = config_.positions() - 1;
  const at::Tensor rows = patch_embedding_(patch_rows(items, 0, n * patches, dtype_, device_));
  const at::Tensor classes = class_embedding_.expand({n, 1, config_.width});
  const at::Tensor x =
      at::cat({classes, rows.view({n, -1, config_.width})}, 1) + position_embedding_;
  return pre_layrnorm_(x.reshape({n * config_.positions(), config_.width}));
}

std::shared_ptr<ClipVisionTower::Run> ClipVisionTower::begin(std::vector<VisualItem> items,
                                                             std::vector<int64_t> wanted) const {
  check_patches(items, config_.channels * config_.patch * config_.patch);
  const std::vector<int64_t> rows(items.size(), config_.positions());
  Adaptation adaptation = item_adaptation(items, rows);
  std::vector<int64_t> ends;
  for (size_t i = 1; i <= items.size(); ++i)
    ends.push_back(static_cast<int64_t>(i) * config_.positions());
  const at::Tensor x =
      at::empty({ends.back(), config_.width}, at::TensorOptions().dtype(dtype_).device(device_));
  std::vector<at::Tensor> states(wanted.size());
  return std::make_shared<Run>(Run{
      std::move(items), std::move(wanted), std::move(adaptation),
      TowerAttention(ends, config_.heads, config_.width, dtype_, device_), x, std::move(states)});
}

// Two stages: a row needs the keys of its picture, and nothing else of other rows.
void ClipVisionTower::add_layer(const ClipVisionLayer& layer, const std::shared_ptr<Run>& run,
                                Encoding& encoding) const {
  const int64_t rows = run->x.size(0);
  encoding.add({rows, products_of({&layer.q_proj, &layer.k_proj, &layer.v_proj}),
                [this, run, &layer](int64_t begin, int64_t end) {
                  const auto heads = [&](const at::Tensor& y) {
                    return y.view({-1, config_.heads, config_.width / config_.heads});
                  };
                  const at::Tensor x = layer.layer_norm1(as_read(run->x.slice(0, begin, end)));
                  const auto qkv = project(x, {&layer.q_proj, &layer.k_proj, &layer.v_proj},
                                           run->adaptation.part(begin, end));
                  run->attention.keep(begin, heads(qkv[0]), heads(qkv[1]), heads(qkv[2]));
                }});
  encoding.add({rows,
                run->attention.products() + products_of({&layer.out_proj, &layer.fc1, &layer.fc2}),
                [this, run, &layer](int64_t begin, int64_t end) {
                  const Adaptation adaptation = run->adaptation.part(begin, end);
                  const at::Tensor x = run->x.slice(0, begin, end);
                  x.add_(layer.out_proj(run->attention.attend(begin, end), adaptation));
                  const at::Tensor inner = layer.fc1(layer.layer_norm2(as_read(x)), adaptation);
                  x.add_(layer.fc2(activate(inner, config_.activation), adaptation));
                }});
}

void ClipVisionTower::add_stages(const std::shared_ptr<Run>& run, Encoding& encoding) const {
  const auto items = static_cast<int64_t>(run->items.size());
  encoding.add(
      {items, products_of({&patch_embedding_}) * static_cast<double>(config_.positions()),
       [this, run](int64_t begin, int64_t end) {
         const std::span<const VisualItem> all = run->items;
         const int64_t each = config_.positions();
         run->x.slice(0, begin * each, end * each).copy_(embed(all.subspan(begin, end - begin)));
       }});
  for (size_t depth = 0;; ++depth) {
    const bool last = depth == layers_.size();
    for (size_t i = 0; i < run->wanted.size(); ++i)
      if (run->wanted[i] == static_cast<int64_t>(depth))
        encoding.add({1, 0, [run, i, last](int64_t, int64_t) {
                        run->states[i] = last ? run->x : run->x.clone();
                      }});
    if (last) return;
    add_layer(layers_[depth], run, encoding);
  }
}

}  // namespace valora::models
