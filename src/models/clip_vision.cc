#include "models/clip_vision.h"

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
  return std::make_shared<Run>(
      Run{{std::move(adaptation),
           TowerAttention(ends, config_.heads, config_.width, dtype_, device_), x},
          std::move(items),
          std::move(wanted),
          std::move(states)});
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
    add_clip_layer(layers_[depth], config_, run, encoding);
  }
}

}  // namespace valora::models
