#include "models/qwen2_vl_vision.h"

#include "models/table_linear.h"

namespace valora::models {
namespace {

constexpr double kLayerNormEps = 1e-6;

}  // namespace

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

struct Qwen2VlVisionTower::Run {
  std::vector<VisualItem> items;
  QwenVisionRows rows;
  CosSin angles;
  TowerAttention attention;
  at::Tensor x;       // [patches, width]
  at::Tensor merged;  // [tokens, out]
};

// Two stages, because a row needs the keys of all rows but nothing else from them.
void Qwen2VlVisionTower::add_block(const Qwen2VlVisionBlock& block, const std::shared_ptr<Run>& run,
                                   Encoding& encoding) const {
  const int64_t patches = run->x.size(0);
  encoding.add({patches, products_of({&block.qkv}), [run, &block](int64_t begin, int64_t end) {
                  const Adaptation adaptation = run->rows.patch_adaptation.part(begin, end);
                  const at::Tensor x = block.norm1(as_read(run->x.slice(0, begin, end)));
                  run->attention.store_rotated(begin, block.qkv(x, adaptation), run->angles);
                }});
  encoding.add({patches,
                run->attention.products() + products_of({&block.proj, &block.fc1, &block.fc2}),
                [this, run, &block](int64_t begin, int64_t end) {
                  const Adaptation adaptation = run->rows.patch_adaptation.part(begin, end);
                  const at::Tensor x = run->x.slice(0, begin, end);
                  x.add_(block.proj(run->attention.attend(begin, end), adaptation));
                  const at::Tensor inner = block.fc1(block.norm2(as_read(x)), adaptation);
                  x.add_(block.fc2(activate(inner, config_.activation), adaptation));
                }});
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
  const auto run = std::make_shared<Run>(
      Run{std::move(items), std::move(rows), std::move(angles),
          TowerAttention(frames, c.heads, c.width, dtype_, device_),
          at::empty({patches, c.width}, options), at::empty({patches / unit, c.out}, options)});
  auto encoding = std::make_unique<Encoding>(pieces);
  encoding->add({patches, products_of({&patch_embed_}), [this, run](int64_t begin, int64_t end) {
                   run->x.slice(0, begin, end)
                       .copy_(patch_embed_(patch_rows(run->items, begin, end, dtype_, device_)));
                 }});
  for (const Qwen2VlVisionBlock& block : blocks_) add_block(block, run, *encoding);
  encoding->add({patches / unit, merger_.products(), [this, run, unit](int64_t begin, int64_t end) {
                   const at::Tensor x = ln_q_(run->x.slice(0, begin * unit, end * unit));
                   run->merged.slice(0, begin, end)
                       .copy_(merger_(x, run->rows.token_adaptation.part(begin, end)));
                 }});
  encoding->finish_with([run] { return split_items(run->merged, run->rows.tokens); });
  return encoding;
}

}  // namespace valora::models
