#include "models/towers/pixtral_vision.h"

#include "models/decoder/layers.h"

namespace valora::models {
namespace {

constexpr double kPixtralEps = 1e-5;

std::string pixtral_layer_name(const std::string& prefix, int64_t index) {
  return prefix + "transformer.layers." + std::to_string(index) + ".";
}

// The two axes take alternate frequencies of a one-axis rotary embedding.
at::Tensor every_second(int64_t first, int64_t head_dim, double theta) {
  const at::Tensor exponents = at::arange(2 * first, head_dim, 4, at::kFloat) / double(head_dim);
  return 1.0 / at::pow(theta, exponents);
}

}  // namespace

PixtralVisionConfig read_pixtral_vision_config(const ConfigReader& vision) {
  vision.refuse_changed_layers();
  ClipTowerConfig defaults{{.width = 1024, .intermediate = 4096, .layers = 24, .heads = 16}};
  defaults.image = 1024;
  defaults.patch = 16;
  PixtralVisionConfig c{read_clip_tower_config(vision, defaults, "gelu")};
  c.norm_eps = kPixtralEps;
  if (c.width / c.heads % 4 != 0)
    vision.refuse("the vision tower's head size must be a multiple of 4");
  if (vision.integer("head_dim", c.width / c.heads) != c.width / c.heads)
    vision.refuse("\"head_dim\" is not \"hidden_size\" / \"num_attention_heads\"");
  c.theta = vision.number("rope_theta", c.theta);
  if (vision.has("rope_parameters")) {
    const ConfigReader rope = vision.child("rope_parameters");
    c.theta = rope.number("rope_theta", c.theta);
    if (const std::string type = rope.text("rope_type", "axial");
        type != "axial" && type != "default")
      rope.refuse("rope_type \"" + type + "\" of the vision tower is not supported");
  }
  if (!(c.theta > 0)) vision.refuse("\"rope_theta\" must be positive");
  return c;
}

void add_pixtral_vision_modules(const PixtralVisionConfig& c, const std::string& prefix,
                                std::vector<adapters::Module>& modules) {
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = pixtral_layer_name(prefix, i);
    for (const char* name : {"k_proj", "v_proj", "q_proj", "o_proj"})
      modules.push_back({layer + "attention." + name, c.width, c.width, i, true});
    for (const char* name : {"gate_proj", "up_proj"})
      modules.push_back({layer + "feed_forward." + name, c.width, c.intermediate, i, true});
    modules.push_back({layer + "feed_forward.down_proj", c.intermediate, c.width, i, true});
  }
  modules.push_back({prefix + "patch_conv", c.channels * c.patch * c.patch, c.width, -1, true,
                     adapters::ModuleKind::kOther});
}

PixtralVisionTower::PixtralVisionTower(Weights& weights, const adapters::ModuleTable& modules,
                                       const std::string& prefix, const PixtralVisionConfig& c,
                                       int64_t depth, int64_t merge, at::Device device)
    : config_(c),
      merge_(merge),
      device_(device),
      dtype_(weights.dtype()),
      patch_conv_(
          patch_embedding(weights, prefix + "patch_conv", c.width, {c.channels, c.patch, c.patch})),
      ln_pre_(weights, prefix + "ln_pre", c.width, kPixtralEps) {
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = pixtral_layer_name(prefix, i);
    if (i >= depth) {
      weights.leave_out(layer);
      continue;
    }
    const auto linear = [&](const char* name) {
      return table_linear(weights, modules, layer + name, false);
    };
    layers_.push_back({RmsNorm(weights, layer + "attention_norm", c.width, kPixtralEps),
                       RmsNorm(weights, layer + "ffn_norm", c.width, kPixtralEps),
                       linear("attention.q_proj"), linear("attention.k_proj"),
                       linear("attention.v_proj"), linear("attention.o_proj"),
                       linear("feed_forward.gate_proj"), linear("feed_forward.up_proj"),
                       linear("feed_forward.down_proj")});
  }
}

struct PixtralVisionTower::Rows : ClipRows {
  CosSin angles;
};

CosSin PixtralVisionTower::angles(std::span<const VisualItem> items) const {
  const int64_t head_dim = config_.width / config_.heads;
  const at::Tensor angle = grid_angles(items, merge_, every_second(0, head_dim, config_.theta),
                                       every_second(1, head_dim, config_.theta))
                               .to(device_);
  return {at::cos(angle), at::sin(angle)};
}

void PixtralVisionTower::add_layer(const PixtralLayer& layer, const std::shared_ptr<Rows>& run,
                                   Encoding& encoding) const {
  const int64_t rows = run->x.size(0);
  encoding.add({rows, products_of({&layer.q_proj, &layer.k_proj, &layer.v_proj}),
                [run, &layer](int64_t begin, int64_t end) {
                  const at::Tensor x = layer.attention_norm(as_read(run->x.slice(0, begin, end)));
                  const auto qkv = project(x, {&layer.q_proj, &layer.k_proj, &layer.v_proj},
                                           run->adaptation.part(begin, end));
                  run->attention.store_rotated(begin, at::cat(qkv, 1), run->angles);
                }});
  encoding.add({rows,
                run->attention.products() + products_of({&layer.o_proj, &layer.gate_proj,
                                                         &layer.up_proj, &layer.down_proj}),
                [run, &layer, activation = config_.activation](int64_t begin, int64_t end) {
                  const Adaptation adaptation = run->adaptation.part(begin, end);
                  const at::Tensor x = run->x.slice(0, begin, end);
                  x.add_(layer.o_proj(run->attention.attend(begin, end), adaptation));
                  const at::Tensor inner = gated_by(layer.ffn_norm(as_read(x)), layer.gate_proj,
                                                    layer.up_proj, activation, adaptation);
                  x.add_(layer.down_proj(inner, adaptation));
                }});
}

std::shared_ptr<TowerStates> PixtralVisionTower::begin(std::vector<VisualItem> items,
                                                       std::vector<int64_t> wanted,
                                                       Encoding& encoding) const {
  check_patches(items, config_.channels * config_.patch * config_.patch);
  std::vector<int64_t> rows;
  for (const VisualItem& item : items) {
    TORCH_CHECK(item.input->grid_h % merge_ == 0 && item.input->grid_w % merge_ == 0,
                "a picture of ", item.input->grid_h, " x ", item.input->grid_w,
                " patches cannot be merged by ", merge_);
    rows.push_back(item.input->patch_count());
  }
  Adaptation adaptation = item_adaptation(items, rows);
  const std::vector<int64_t> ends = frame_ends(items);
  const at::Tensor x =
      at::empty({ends.back(), config_.width}, at::TensorOptions().dtype(dtype_).device(device_));
  CosSin angles = this->angles(items);
  std::vector<at::Tensor> states(wanted.size());
  const auto run = std::make_shared<Rows>(
      Rows{{{std::move(items), std::move(wanted), std::move(states), x.options()},
            std::move(adaptation),
            TowerAttention(ends, config_.heads, config_.width, dtype_, device_),
            x},
           std::move(angles)});
  encoding.add({x.size(0), products_of({&patch_conv_}), [this, run](int64_t begin, int64_t end) {
                  const at::Tensor patches = patch_rows(run->items, begin, end, dtype_, device_);
                  run->x.slice(0, begin, end).copy_(ln_pre_(patch_conv_(patches)));
                }});
  for (size_t depth = 0; depth <= layers_.size(); ++depth) {
    keep_states(run, depth, depth == layers_.size(), encoding);
    if (depth < layers_.size()) add_layer(layers_[depth], run, encoding);
  }
  return run;
}

}  // namespace valora::models
