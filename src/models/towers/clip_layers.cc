#include "models/towers/clip_layers.h"

#include "models/decoder/layers.h"

namespace valora::models {
namespace {

std::string clip_layer_name(const std::string& prefix, int64_t index) {
  return prefix + "encoder.layers." + std::to_string(index) + ".";
}

void add_clip_layer(const ClipLayer& layer, const ClipLayerConfig& config,
                    const std::shared_ptr<ClipRows>& run, Encoding& encoding) {
  const int64_t rows = run->x.size(0), heads = config.heads, dim = config.width / config.heads;
  encoding.add({rows, products_of({&layer.q_proj, &layer.k_proj, &layer.v_proj}),
                [run, &layer, heads, dim](int64_t begin, int64_t end) {
                  const auto split = [&](const at::Tensor& y) { return y.view({-1, heads, dim}); };
                  const at::Tensor x = layer.layer_norm1(as_read(run->x.slice(0, begin, end)));
                  const auto qkv = project(x, {&layer.q_proj, &layer.k_proj, &layer.v_proj},
                                           run->adaptation.part(begin, end));
                  run->attention.keep(begin, split(qkv[0]), split(qkv[1]), split(qkv[2]));
                }});
  encoding.add({rows,
                run->attention.products() + products_of({&layer.out_proj, &layer.fc1, &layer.fc2}),
                [run, &layer, activation = config.activation](int64_t begin, int64_t end) {
                  const Adaptation adaptation = run->adaptation.part(begin, end);
                  const at::Tensor x = run->x.slice(0, begin, end);
                  x.add_(layer.out_proj(run->attention.attend(begin, end), adaptation));
                  const at::Tensor inner = layer.fc1(layer.layer_norm2(as_read(x)), adaptation);
                  x.add_(layer.fc2(activate(inner, activation), adaptation));
                }});
}

}  // namespace

ClipTowerConfig read_clip_tower_config(const ConfigReader& vision, const ClipTowerConfig& defaults,
                                       const std::string& activation) {
  ClipTowerConfig c = defaults;
  c.width = vision.at_most("hidden_size", kMaxVisionWidth, c.width);
  c.intermediate = vision.at_most("intermediate_size", kMaxVisionWidth, c.intermediate);
  c.layers = vision.at_most("num_hidden_layers", kMaxLayers, c.layers);
  c.heads = vision.integer("num_attention_heads", c.heads);
  c.norm_eps = vision.number("layer_norm_eps", c.norm_eps);
  c.activation = read_activation(vision, "hidden_act", activation);
  if (c.width % c.heads != 0)
    vision.refuse(
        "the vision tower's \"hidden_size\" is not a multiple of its \"num_attention_heads\"");
  c.channels = vision.at_most("num_channels", kMaxVisionSide, c.channels);
  c.image = vision.at_most("image_size", 1 << 13, c.image);
  c.patch = vision.at_most("patch_size", kMaxVisionSide, c.patch);
  if (c.channels != 3) vision.refuse("\"num_channels\" must be 3");
  if (c.patch > c.image)
    vision.refuse("the vision tower's \"patch_size\" exceeds its \"image_size\"");
  return c;
}

void add_clip_tower_modules(const ClipTowerConfig& c, int64_t positions, const std::string& prefix,
                            std::vector<adapters::Module>& modules) {
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = clip_layer_name(prefix, i);
    for (const char* name : {"k_proj", "v_proj", "q_proj", "out_proj"})
      modules.push_back({layer + "self_attn." + name, c.width, c.width, i, true});
    modules.push_back({layer + "mlp.fc1", c.width, c.intermediate, i, true});
    modules.push_back({layer + "mlp.fc2", c.intermediate, c.width, i, true});
  }
  modules.push_back({prefix + "embeddings.patch_embedding", c.channels * c.patch * c.patch, c.width,
                     -1, true, adapters::ModuleKind::kOther});
  modules.push_back({prefix + "embeddings.position_embedding", positions, c.width, -1, true,
                     adapters::ModuleKind::kOther});
}

std::vector<ClipLayer> clip_layers(Weights& weights, const adapters::ModuleTable& modules,
                                   const std::string& prefix, const ClipLayerConfig& c,
                                   int64_t depth) {
  std::vector<ClipLayer> layers;
  for (int64_t i = 0; i < depth; ++i) {
    const std::string layer = clip_layer_name(prefix, i);
    const auto linear = [&](const char* name) {
      return table_linear(weights, modules, layer + name, true);
    };
    layers.push_back({LayerNorm(weights, layer + "layer_norm1", c.width, c.norm_eps),
                      LayerNorm(weights, layer + "layer_norm2", c.width, c.norm_eps),
                      linear("self_attn.q_proj"), linear("self_attn.k_proj"),
                      linear("self_attn.v_proj"), linear("self_attn.out_proj"), linear("mlp.fc1"),
                      linear("mlp.fc2")});
  }
  for (int64_t i = depth; i < c.layers; ++i) weights.leave_out(clip_layer_name(prefix, i));
  return layers;
}

void keep_states(const std::shared_ptr<ClipRows>& run, size_t layer, bool last,
                 Encoding& encoding) {
  for (size_t i = 0; i < run->wanted.size(); ++i)
    if (run->wanted[i] == static_cast<int64_t>(layer))
      encoding.add({1, 0, [run, i, last](int64_t, int64_t) {
                      run->states[i] = last ? run->x : run->x.clone();
                    }});
}

void add_clip_stages(const std::vector<ClipLayer>& layers, const ClipLayerConfig& config,
                     const std::shared_ptr<ClipRows>& run, Encoding& encoding) {
  for (size_t depth = 0;; ++depth) {
    const bool last = depth == layers.size();
    keep_states(run, depth, last, encoding);
    if (last) return;
    add_clip_layer(layers[depth], config, run, encoding);
  }
}

}  // namespace valora::models
