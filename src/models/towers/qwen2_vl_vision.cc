#include "models/towers/qwen2_vl_vision.h"

namespace valora::models {

Qwen2VlVisionConfig Qwen2VlVisionTower::read_config(const ConfigReader& vision) {
  Config c;
  vision.refuse_changed_layers();
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
    modules.push_back({block + "attn.qkv", c.width, 3 * c.width, i, true});
    modules.push_back({block + "attn.proj", c.width, c.width, i, true});
    modules.push_back({block + "mlp.fc1", c.width, c.mlp, i, true});
    modules.push_back({block + "mlp.fc2", c.mlp, c.width, i, true});
  }
  add_patch_merger_modules(prefix + "merger", c.width, c.merge, c.out, modules);
  modules.push_back({prefix + "patch_embed.proj", c.patch_dim(), c.width, -1, true,
                     adapters::ModuleKind::kOther});
}

Qwen2VlVisionTower::Qwen2VlVisionTower(Weights& weights, const adapters::ModuleTable& modules,
                                       const std::string& prefix, const Qwen2VlVisionConfig& c,
                                       at::Device device)
    : config_(c),
      device_(device),
      dtype_(weights.dtype()),
      patch_embed_(patch_embedding(weights, prefix + "patch_embed.proj", c.width,
                                   {c.channels, c.temporal_patch, c.patch, c.patch})),
      ln_q_(weights, prefix + "merger.ln_q", c.width, kQwenVisionNormEps),
      merger_(weights, modules, prefix + "merger") {
  for (int64_t i = 0; i < c.depth; ++i)
    blocks_.push_back(read_qwen_vision_block(weights, modules,
                                             prefix + "blocks." + std::to_string(i) + ".", c.width,
                                             "mlp.fc1", "mlp.fc2"));
}

std::unique_ptr<Encoding> Qwen2VlVisionTower::begin(std::vector<VisualItem> items,
                                                    PieceSize pieces) const {
  const Config& c = config_;
  check_patches(items, c.patch_dim());
  QwenVisionRows rows = qwen_vision_rows(items, c.merge);
  const std::vector<int64_t> frames = frame_ends(items);
  CosSin angles = patch_rotary(items, c.merge, c.width / c.heads, device_);
  const auto options = at::TensorOptions().dtype(dtype_).device(device_);
  const int64_t patches = frames.back(), unit = c.merge * c.merge;
  const auto run = std::make_shared<QwenVisionRun>(QwenVisionRun{
      std::move(items), std::move(rows), std::move(angles),
      TowerAttention(frames, c.heads, c.width, dtype_, device_),
      at::empty({patches, c.width}, options), at::empty({patches / unit, c.out}, options)});
  auto encoding = std::make_unique<Encoding>(pieces);
  encoding->add({patches, products_of({&patch_embed_}), [this, run](int64_t begin, int64_t end) {
                   run->x.slice(0, begin, end)
                       .copy_(patch_embed_(patch_rows(run->items, begin, end, dtype_, device_)));
                 }});
  for (const QwenVisionBlock& block : blocks_)
    add_qwen_vision_block(block, c.activation, run, *encoding);
  encoding->add({patches / unit, merger_.products(), [this, run, unit](int64_t begin, int64_t end) {
                   const at::Tensor x = ln_q_(run->x.slice(0, begin * unit, end * unit));
                   run->merged.slice(0, begin, end)
                       .copy_(merger_(x, run->rows.token_adaptation.part(begin, end)));
                 }});
  encoding->finish_with([run] { return split_items(run->merged, run->rows.tokens); });
  return encoding;
}

}  // namespace valora::models
