#include "models/towers/intern_vision.h"

#include "models/decoder/layers.h"
#include "ops/elementwise/elementwise.h"

namespace valora::models {

const InternVisionNames kInternVisionNames{
    .class_token = "embeddings.cls_token",
    .positions = "embeddings.position_embeddings",
    .patches = "embeddings.patch_embeddings.projection",
    .layers = "encoder.layer.",
    .norm1 = "layernorm_before",
    .norm2 = "layernorm_after",
    .attention = "attention.",
    .qkv = nullptr,
    .out = "attention.projection_layer",
    .scale1 = "lambda_1",
    .scale2 = "lambda_2",
};
const InternVisionNames kInternVitNames{
    .class_token = "embeddings.class_embedding",
    .positions = "embeddings.position_embedding",
    .patches = "embeddings.patch_embedding",
    .layers = "encoder.layers.",
    .norm1 = "norm1",
    .norm2 = "norm2",
    .attention = "attn.",
    .qkv = "attn.qkv",
    .out = "attn.proj",
    .scale1 = "ls1",
    .scale2 = "ls2",
};

namespace {

// A side length, given as a number or as two equal ones.
int64_t square_side(const ConfigReader& vision, const std::string& key, int64_t most,
                    int64_t fallback) {
  if (!vision.has(key) || !vision.json().at(key).is_array())
    return vision.at_most(key, most, fallback);
  const std::vector<int64_t> sides = vision.integers(key);
  if (sides.size() != 2 || sides[0] != sides[1] || sides[0] < 1 || sides[0] > most)
    vision.refuse("\"" + key + "\" must be two equal sides of 1 to " + std::to_string(most));
  return sides[0];
}

InternVisionConfig read_intern_sizes(const ConfigReader& vision, InternVisionConfig c) {
  vision.refuse_changed_layers();
  c.width = vision.at_most("hidden_size", kMaxVisionWidth, c.width);
  c.intermediate = vision.at_most("intermediate_size", kMaxVisionWidth, c.intermediate);
  c.layers = vision.at_most("num_hidden_layers", kMaxLayers, c.layers);
  c.heads = vision.integer("num_attention_heads", c.heads);
  c.norm_eps = vision.number("layer_norm_eps", c.norm_eps);
  c.activation = read_activation(vision, "hidden_act", "gelu");
  c.image = square_side(vision, "image_size", 1 << 13, c.image);
  c.patch = square_side(vision, "patch_size", kMaxVisionSide, c.patch);
  const std::string norm = vision.text("norm_type", c.rms_norm ? "rms_norm" : "layer_norm");
  if (norm != "layer_norm" && norm != "rms_norm")
    vision.refuse("norm_type \"" + norm + "\" is not supported");
  c.rms_norm = norm == "rms_norm";
  if (vision.integer("num_channels", 3) != 3) vision.refuse("\"num_channels\" must be 3");
  if (c.width % c.heads != 0)
    vision.refuse(
        "the vision tower's \"hidden_size\" is not a multiple of its \"num_attention_heads\"");
  if (c.patch > c.image)
    vision.refuse("the vision tower's \"patch_size\" exceeds its \"image_size\"");
  return c;
}

// The indices of a tile's patches in order of merge blocks. int64 [side²]
at::Tensor block_places(int64_t side, int64_t merge) {
  return at::arange(side * side)
      .reshape({side / merge, merge, side / merge, merge})
      .permute({0, 2, 1, 3})
      .reshape({side * side});
}

}  // namespace

InternVisionConfig read_intern_vision_config(const ConfigReader& vision) {
  if (const std::string type = vision.text("model_type", "internvl_vision");
      type != "internvl_vision")
    vision.refuse("a vision tower of type \"" + type + "\" is not supported, only internvl_vision");
  InternVisionConfig c = read_intern_sizes(vision, {});
  c.qk_norm = vision.flag("use_qk_norm", false);
  c.qkv_bias = vision.flag("attention_bias", false);
  c.positions = vision.flag("use_absolute_position_embeddings", true);
  c.last_norm = !vision.flag("use_mean_pooling", true);
  return c;
}

InternVisionConfig read_intern_vit_config(const ConfigReader& vision) {
  if (const std::string type = vision.text("model_type", "intern_vit_6b"); type != "intern_vit_6b")
    vision.refuse("a vision tower of type \"" + type + "\" is not supported, only intern_vit_6b");
  InternVisionConfig c = read_intern_sizes(vision, {.width = 3200,
                                                    .intermediate = 12800,
                                                    .layers = 48,
                                                    .heads = 25,
                                                    .image = 224,
                                                    .rms_norm = true});
  c.qk_norm = vision.flag("qk_normalization", true);
  c.qkv_bias = vision.flag("qkv_bias", false);
  c.head_norm_eps = c.norm_eps;
  return c;
}

void add_intern_vision_modules(const InternVisionConfig& c, const InternVisionNames& names,
                               const std::string& prefix, std::vector<adapters::Module>& modules) {
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = prefix + names.layers + std::to_string(i) + ".";
    if (names.qkv)
      modules.push_back({layer + names.qkv, c.width, 3 * c.width, i, true});
    else
      for (const char* name : {"q_proj", "k_proj", "v_proj"})
        modules.push_back({layer + names.attention + name, c.width, c.width, i, true});
    modules.push_back({layer + names.out, c.width, c.width, i, true});
    modules.push_back({layer + "mlp.fc1", c.width, c.intermediate, i, true});
    modules.push_back({layer + "mlp.fc2", c.intermediate, c.width, i, true});
  }
  modules.push_back({prefix + names.patches, 3 * c.patch * c.patch, c.width, -1, true,
                     adapters::ModuleKind::kOther});
}

InternVisionTower::InternVisionTower(Weights& weights, const adapters::ModuleTable& modules,
                                     const InternVisionNames& names, const std::string& prefix,
                                     const InternVisionConfig& c, int64_t depth, at::Device device)
    : config_(c),
      device_(device),
      dtype_(weights.dtype()),
      class_token_(weights.get(prefix + names.class_token, {1, 1, c.width})),
      patch_bias_(weights.get(prefix + names.patches + ".bias", {c.width})),
      patch_embedding_(
          patch_embedding(weights, prefix + names.patches, c.width, {3, c.patch, c.patch})) {
  if (c.positions)
    positions_ = weights.get(prefix + names.positions, {1, 1 + c.side() * c.side(), c.width});
  weights.leave_out(prefix + "embeddings.mask_token");
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string name = prefix + names.layers + std::to_string(i) + ".";
    if (i < depth)
      layers_.push_back(layer(weights, modules, names, name));
    else
      weights.leave_out(name);
  }
  if (c.last_norm) last_norm_ = LayerNorm(weights, prefix + "layernorm", c.width, c.norm_eps);
}

InternVisionTower::Norm InternVisionTower::norm(Weights& weights, const std::string& name) const {
  if (config_.rms_norm) return RmsNorm(weights, name, config_.width, config_.norm_eps);
  return LayerNorm(weights, name, config_.width, config_.norm_eps);
}

at::Tensor InternVisionTower::apply(const Norm& norm, const at::Tensor& x) {
  return std::visit([&](const auto& one) { return one(x); }, norm);
}

InternVisionTower::Layer InternVisionTower::layer(Weights& weights,
                                                  const adapters::ModuleTable& modules,
                                                  const InternVisionNames& names,
                                                  const std::string& name) const {
  Layer layer{.norm1 = norm(weights, name + names.norm1),
              .norm2 = norm(weights, name + names.norm2),
              .qkv = {},
              .q_norm = {},
              .k_norm = {},
              .out = table_linear(weights, modules, name + names.out, true),
              .fc1 = table_linear(weights, modules, name + "mlp.fc1", true),
              .fc2 = table_linear(weights, modules, name + "mlp.fc2", true),
              .scale1 = weights.get(name + names.scale1, {config_.width}),
              .scale2 = weights.get(name + names.scale2, {config_.width})};
  const std::string attention = name + names.attention;
  if (names.qkv)
    layer.qkv.push_back(table_linear(weights, modules, name + names.qkv, config_.qkv_bias));
  else
    for (const char* part : {"q_proj", "k_proj", "v_proj"})
      layer.qkv.push_back(table_linear(weights, modules, attention + part, config_.qkv_bias));
  if (config_.qk_norm) {
    layer.q_norm = RmsNorm(weights, attention + "q_norm", config_.width, config_.head_norm_eps);
    layer.k_norm = RmsNorm(weights, attention + "k_norm", config_.width, config_.head_norm_eps);
  }
  return layer;
}

// The position embeddings of a tile with `side` patches a side, in the order of its rows, plus the
// class token and the patches' bias. Interpolated if `side` differs from the learned grid's.
at::Tensor InternVisionTower::positions(int64_t side, int64_t merge) const {
  const int64_t width = config_.width, learned = config_.side();
  const at::Tensor classes = class_token_.reshape({1, width}).to(at::kFloat);
  const at::Tensor bias = patch_bias_.to(at::kFloat);
  if (!positions_.defined()) return at::cat({classes, bias.expand({side * side, width})});
  const at::Tensor all = positions_.reshape({-1, width}).to(at::kFloat);
  at::Tensor places = all.slice(0, 1);
  if (side != learned)
    places = at::upsample_bicubic2d(
                 places.reshape({1, learned, learned, width}).permute({0, 3, 1, 2}), {side, side},
                 /*align_corners=*/false)
                 .permute({0, 2, 3, 1})
                 .reshape({-1, width});
  places = places.index_select(0, block_places(side, merge).to(device_));
  return at::cat({classes + all.slice(0, 0, 1), places + bias});
}

std::shared_ptr<InternVisionTower::Run> InternVisionTower::begin(std::vector<VisualItem> items,
                                                                 int64_t merge) const {
  check_patches(items, 3 * config_.patch * config_.patch);
  const int64_t side = items.front().input->grid_h;
  TORCH_CHECK(side % merge == 0, "a tile of ", side, " patches a side cannot be merged by ", merge);
  const int64_t each = 1 + side * side;
  std::vector<int64_t> rows, ends;
  int64_t tiles = 0;
  for (const VisualItem& item : items) {
    TORCH_CHECK(item.input->grid_h == side && item.input->grid_w == side,
                "the tiles of a batch have different sizes");
    rows.push_back(item.input->grid_t * each);
    for (int tile = 0; tile < item.input->grid_t; ++tile) ends.push_back(++tiles * each);
  }
  Adaptation adaptation = item_adaptation(items, rows);
  const at::Tensor x =
      at::empty({ends.back(), config_.width}, at::TensorOptions().dtype(dtype_).device(device_));
  return std::make_shared<Run>(
      Run{std::move(items), std::move(adaptation),
          TowerAttention(ends, config_.heads, config_.width, dtype_, device_), x,
          positions(side, merge), tiles, side});
}

void InternVisionTower::add_stages(const std::shared_ptr<Run>& run, Encoding& encoding) const {
  const int64_t patches = run->side * run->side, each = run->rows_of_tile();
  encoding.add({run->tiles, products_of({&patch_embedding_}) * static_cast<double>(patches),
                [this, run, patches, each](int64_t begin, int64_t end) {
                  const at::Tensor rows = patch_embedding_(
                      patch_rows(run->items, begin * patches, end * patches, dtype_, device_));
                  const at::Tensor x =
                      run->x.slice(0, begin * each, end * each).view({end - begin, each, -1});
                  x.select(1, 0).copy_(run->positions[0]);
                  x.slice(1, 1).copy_(rows.view({end - begin, patches, -1}).to(at::kFloat) +
                                      run->positions.slice(0, 1));
                }});
  for (const Layer& layer : layers_) add_layer(layer, run, encoding);
}

std::vector<at::Tensor> InternVisionTower::queries_keys_values(const Layer& layer,
                                                               const at::Tensor& x,
                                                               const Adaptation& adaptation) const {
  std::vector<at::Tensor> parts;
  if (layer.qkv.size() == 1)
    parts = layer.qkv[0](x, adaptation).chunk(3, 1);
  else
    parts = project(x, {&layer.qkv[0], &layer.qkv[1], &layer.qkv[2]}, adaptation);
  if (config_.qk_norm) {
    parts[0] = layer.q_norm(parts[0].contiguous());
    parts[1] = layer.k_norm(parts[1].contiguous());
  }
  const int64_t dim = config_.width / config_.heads;
  for (at::Tensor& part : parts) part = part.reshape({-1, config_.heads, dim});
  return parts;
}

void InternVisionTower::add_layer(const Layer& layer, const std::shared_ptr<Run>& run,
                                  Encoding& encoding) const {
  double products = 0;
  for (const Linear& linear : layer.qkv) products += products_of({&linear});
  const int64_t rows = run->x.size(0);
  encoding.add({rows, products, [this, run, &layer](int64_t begin, int64_t end) {
                  const at::Tensor x = apply(layer.norm1, as_read(run->x.slice(0, begin, end)));
                  const auto qkv = queries_keys_values(layer, x, run->adaptation.part(begin, end));
                  run->attention.keep(begin, qkv[0], qkv[1], qkv[2]);
                }});
  encoding.add(
      {rows, run->attention.products() + products_of({&layer.out, &layer.fc1, &layer.fc2}),
       [this, run, &layer](int64_t begin, int64_t end) {
         const Adaptation adaptation = run->adaptation.part(begin, end);
         const at::Tensor x = run->x.slice(0, begin, end);
         x.addcmul_(layer.out(run->attention.attend(begin, end), adaptation), layer.scale1);
         const at::Tensor inner = layer.fc1(apply(layer.norm2, as_read(x)), adaptation);
         x.addcmul_(layer.fc2(activate(inner, config_.activation), adaptation), layer.scale2);
       }});
}

at::Tensor InternVisionTower::normalised(const at::Tensor& x) const {
  return config_.last_norm ? last_norm_(x) : x;
}

}  // namespace valora::models
