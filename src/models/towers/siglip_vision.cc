#include "models/towers/siglip_vision.h"

namespace valora::models {
namespace {

// The positions of all items' patches, in row order. [rows]
at::Tensor siglip_places(std::span<const VisualItem> items, int64_t merge, int64_t side) {
  std::vector<at::Tensor> all;
  for (const VisualItem& item : items) {
    const int64_t h = item.input->grid_h, w = item.input->grid_w;
    TORCH_CHECK(h % merge == 0 && w % merge == 0, "a tile of ", h, " x ", w,
                " patches is not a multiple of the connector's scale factor ", merge);
    const at::Tensor tile =
        places_along(h, side).unsqueeze(1) * side + places_along(w, side).unsqueeze(0);
    all.push_back(tile.reshape({h / merge, merge, w / merge, merge})
                      .permute({0, 2, 1, 3})
                      .reshape({h * w})
                      .repeat({item.input->grid_t}));
  }
  return at::cat(all);
}

}  // namespace

at::Tensor places_along(int64_t count, int64_t side) {
  constexpr double kBelowOne = 1.0 - 1e-6;
  const at::Tensor boundaries =
      at::arange(1.0 / static_cast<double>(side), 1.0, 1.0 / static_cast<double>(side), at::kFloat);
  const at::Tensor step = at::full({1}, count, at::kFloat).reciprocal(),
                   fractions = (at::arange(count, at::kFloat) * step).clamp_max(kBelowOne);
  return at::bucketize(fractions, boundaries, /*out_int32=*/false, /*right=*/true);
}

SiglipVisionConfig read_siglip_vision_config(const ConfigReader& vision) {
  vision.refuse_changed_layers();
  const ClipTowerConfig defaults{{.width = 1152, .heads = 16, .norm_eps = 1e-6}};
  return {read_clip_tower_config(vision, defaults, "gelu_pytorch_tanh")};
}

SiglipVisionConfig read_plain_siglip_config(const ConfigReader& vision) {
  vision.refuse_changed_layers();
  ClipTowerConfig defaults{{.norm_eps = 1e-6}};
  defaults.patch = 16;
  return {read_clip_tower_config(vision, defaults, "gelu_pytorch_tanh"),
          vision.flag("vision_use_head", true)};
}

void add_siglip_vision_modules(const SiglipVisionConfig& c, const std::string& prefix,
                               std::vector<adapters::Module>& modules) {
  add_clip_tower_modules(c, c.side() * c.side(), prefix, modules);
  if (!c.head) return;
  modules.push_back({prefix + "head.attention.out_proj", c.width, c.width, -1, true});
  modules.push_back({prefix + "head.mlp.fc1", c.width, c.intermediate, -1, true});
  modules.push_back({prefix + "head.mlp.fc2", c.intermediate, c.width, -1, true});
}

SiglipVisionTower::SiglipVisionTower(Weights& weights, const adapters::ModuleTable& modules,
                                     const std::string& prefix, const SiglipVisionConfig& c,
                                     const SiglipUse& use, at::Device device)
    : config_(c),
      use_(use),
      device_(device),
      dtype_(weights.dtype()),
      position_embedding_(weights.get(prefix + "embeddings.position_embedding.weight",
                                      {c.side() * c.side(), c.width})),
      patch_bias_(weights.get(prefix + "embeddings.patch_embedding.bias", {c.width})),
      patch_embedding_(patch_embedding(weights, prefix + "embeddings.patch_embedding", c.width,
                                       {c.channels, c.patch, c.patch})),
      layers_(clip_layers(weights, modules, prefix, c, use.depth)) {
  if (use.last_norm)
    post_layernorm_ = LayerNorm(weights, prefix + "post_layernorm", c.width, c.norm_eps);
  else
    weights.leave_out(prefix + "post_layernorm.");
  weights.leave_out(prefix + "head.");
  weights.leave_out(prefix + "embeddings.position_ids");
}

at::Tensor SiglipVisionTower::places(std::span<const VisualItem> items) const {
  if (!use_.squares) return siglip_places(items, use_.merge, config_.side());
  int64_t tiles = 0;
  for (const VisualItem& item : items) {
    check_tiles(*item.input, config_.side());
    tiles += item.input->grid_t;
  }
  return at::arange(config_.side() * config_.side()).repeat({tiles});
}

std::shared_ptr<TowerStates> SiglipVisionTower::begin(std::vector<VisualItem> items,
                                                      std::vector<int64_t> wanted,
                                                      Encoding& encoding) const {
  check_patches(items, config_.channels * config_.patch * config_.patch);
  std::vector<int64_t> rows;
  for (const VisualItem& item : items) rows.push_back(item.input->patch_count());
  Adaptation adaptation = item_adaptation(items, rows);
  const std::vector<int64_t> tiles = frame_ends(items);
  const at::Tensor x =
      at::empty({tiles.back(), config_.width}, at::TensorOptions().dtype(dtype_).device(device_));
  const at::Tensor places = this->places(items).to(device_);
  std::vector<at::Tensor> states(wanted.size());
  const auto run = std::make_shared<ClipRows>(
      ClipRows{{std::move(items), std::move(wanted), std::move(states), x.options()},
               std::move(adaptation),
               TowerAttention(tiles, config_.heads, config_.width, dtype_, device_),
               x});
  encoding.add(
      {x.size(0), products_of({&patch_embedding_}),
       [this, run, places](int64_t begin, int64_t end) {
         const at::Tensor patches =
             patch_embedding_(patch_rows(run->items, begin, end, dtype_, device_));
         const at::Tensor positions =
             at::embedding(position_embedding_, places.slice(0, begin, end));
         run->x.slice(0, begin, end).copy_(positions.to(at::kFloat).add(patches).add_(patch_bias_));
       }});
  add_clip_stages(layers_, config_, run, encoding);
  return run;
}

}  // namespace valora::models
