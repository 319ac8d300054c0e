#include "models/towers/clip_vision.h"

namespace valora::models {

ClipVisionConfig read_clip_vision_config(const ConfigReader& vision) {
  ClipVisionConfig c;
  vision.refuse_changed_layers();
  if (const std::string type = vision.text("model_type", "clip_vision_model");
      type != "clip_vision_model")
    vision.refuse("a vision tower of type \"" + type +
                  "\" is not supported, only clip_vision_model");
  static_cast<ClipTowerConfig&>(c) = read_clip_tower_config(vision, c, "quick_gelu");
  return c;
}

void add_clip_vision_modules(const ClipVisionConfig& c, const std::string& prefix,
                             std::vector<adapters::Module>& modules) {
  add_clip_tower_modules(c, c.positions(), prefix, modules);
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
      pre_layrnorm_(weights, prefix + "pre_layrnorm", c.width, c.norm_eps),
      layers_(clip_layers(weights, modules, prefix, c, depth)) {
  weights.leave_out(prefix + "post_layernorm.");
  weights.leave_out(prefix + "embeddings.position_ids");
}

at::Tensor ClipVisionTower::embed(std::span<const VisualItem> items, int64_t begin,
                                  int64_t end) const {
  const int64_t n = end - begin, patches = config_.positions() - 1;
  const at::Tensor rows =
      patch_embedding_(patch_rows(items, begin * patches, end * patches, dtype_, device_));
  const at::Tensor classes = class_embedding_.expand({n, 1, config_.width});
  const at::Tensor x =
      at::cat({classes, rows.view({n, -1, config_.width})}, 1) + position_embedding_;
  return pre_layrnorm_(x.reshape({n * config_.positions(), config_.width}));
}

std::shared_ptr<TowerStates> ClipVisionTower::begin(std::vector<VisualItem> items,
                                                    std::vector<int64_t> wanted,
                                                    Encoding& encoding) const {
  check_patches(items, config_.channels * config_.patch * config_.patch);
  const int64_t each = config_.positions();
  std::vector<int64_t> rows, ends;
  int64_t tiles = 0;
  for (const VisualItem& item : items) {
    check_tiles(*item.input, config_.side());
    rows.push_back(item.input->grid_t * each);
    for (int tile = 0; tile < item.input->grid_t; ++tile) ends.push_back(++tiles * each);
  }
  Adaptation adaptation = item_adaptation(items, rows);
  const at::Tensor x =
      at::empty({ends.back(), config_.width}, at::TensorOptions().dtype(dtype_).device(device_));
  std::vector<at::Tensor> states(wanted.size());
  const auto run = std::make_shared<ClipRows>(
      ClipRows{{std::move(items), std::move(wanted), std::move(states), x.options()},
               std::move(adaptation),
               TowerAttention(ends, config_.heads, config_.width, dtype_, device_),
               x});
  encoding.add({tiles, products_of({&patch_embedding_}) * static_cast<double>(each),
                [this, run, each](int64_t begin, int64_t end) {
                  run->x.slice(0, begin * each, end * each).copy_(embed(run->items, begin, end));
                }});
  add_clip_stages(layers_, config_, run, encoding);
  return run;
}

}  // namespace valora::models
