#include "models/towers/qwen2_5_vl_vision.h"

#include <algorithm>

#include "models/decoder/layers.h"

namespace valora::models {
namespace {

constexpr double kNormEps = 1e-6;

}  // namespace

Qwen2_5VlVisionConfig Qwen2_5VlVisionTower::read_config(const ConfigReader& vision) {
  Config c;
  vision.refuse_changed_layers();
  c.depth = vision.at_most("depth", kMaxLayers, 32);
  c.width = vision.at_most("hidden_size", kMaxVisionWidth, 3584);
  c.heads = vision.integer("num_heads", 16);
  c.mlp = vision.at_most("intermediate_size", kMaxVisionWidth, 3420);
  c.out = vision.integer("out_hidden_size", 3584);
  c.patch = vision.at_most("patch_size", kMaxVisionSide, 14);
  c.temporal_patch = vision.at_most("temporal_patch_size", kMaxVisionSide, 2);
  c.merge = vision.at_most("spatial_merge_size", kMaxVisionSide, 2);
  c.window = vision.integer("window_size", 112);
  c.tokens_per_second = vision.number("tokens_per_second", 4);
  c.full_blocks = vision.has("fullatt_block_indexes") ? vision.integers("fullatt_block_indexes")
                                                      : std::vector<int64_t>{7, 15, 23, 31};
  c.activation = read_activation(vision, "hidden_act", "silu");
  if (!(c.tokens_per_second > 0 && c.tokens_per_second <= 1e6))
    vision.refuse("\"tokens_per_second\" is out of range");
  if (c.window_side() < 1) vision.refuse("\"window_size\" is smaller than one merged patch");
  if (vision.integer("in_channels", c.channels) != c.channels)
    vision.refuse("\"in_channels\" must be 3");
  check_rotary_heads(vision, c.width, c.heads);
  return c;
}

void Qwen2_5VlVisionTower::add_modules(const Config& c, const std::string& prefix,
                                       std::vector<adapters::Module>& modules) {
  for (int64_t i = 0; i < c.depth; ++i) {
    const std::string block = prefix + "blocks." + std::to_string(i) + ".";
    modules.push_back({block + "attn.qkv", c.width, 3 * c.width, i, true});
    modules.push_back({block + "attn.proj", c.width, c.width, i, true});
    modules.push_back({block + "mlp.gate_proj", c.width, c.mlp, i, true});
    modules.push_back({block + "mlp.up_proj", c.width, c.mlp, i, true});
    modules.push_back({block + "mlp.down_proj", c.mlp, c.width, i, true});
  }
  add_patch_merger_modules(prefix + "merger", c.width, c.merge, c.out, modules);
  modules.push_back({prefix + "patch_embed.proj", c.patch_dim(), c.width, -1, true,
                     adapters::ModuleKind::kOther});
}

WindowOrder window_order(std::span<const VisualItem> items, int64_t merge, int64_t side) {
  WindowOrder result;
  int64_t first = 0;  // index of the frame's first merged patch
  for (const VisualItem& item : items) {
    const int64_t h = item.input->grid_h / merge, w = item.input->grid_w / merge;
    for (int t = 0; t < item.input->grid_t; ++t, first += h * w)
      for (int64_t window_y = 0; window_y < h; window_y += side)
        for (int64_t window_x = 0; window_x < w; window_x += side) {
          for (int64_t y = window_y; y < std::min(window_y + side, h); ++y)
            for (int64_t x = window_x; x < std::min(window_x + side, w); ++x)
              result.order.push_back(first + y * w + x);
          result.ends.push_back(static_cast<int64_t>(result.order.size()) * merge * merge);
        }
  }
  return result;
}

Qwen2_5VlVisionTower::Qwen2_5VlVisionTower(Weights& weights, const adapters::ModuleTable& modules,
                                           const std::string& prefix,
                                           const Qwen2_5VlVisionConfig& c, at::Device device)
    : config_(c),
      device_(device),
      dtype_(weights.dtype()),
      patch_embed_(patch_embedding(weights, prefix + "patch_embed.proj", c.width,
                                   {c.channels, c.temporal_patch, c.patch, c.patch})),
      ln_q_(weights, prefix + "merger.ln_q", c.width, kNormEps),
      merger_(weights, modules, prefix + "merger") {
  for (int64_t i = 0; i < c.depth; ++i) {
    const std::string block = prefix + "blocks." + std::to_string(i) + ".";
    const auto linear = [&](const char* name) {
      return table_linear(weights, modules, block + name, true);
    };
    const bool full =
        std::find(c.full_blocks.begin(), c.full_blocks.end(), i) != c.full_blocks.end();
    blocks_.push_back({RmsNorm(weights, block + "norm1", c.width, kNormEps),
                       RmsNorm(weights, block + "norm2", c.width, kNormEps), linear("attn.qkv"),
                       linear("attn.proj"), linear("mlp.gate_proj"), linear("mlp.up_proj"),
                       linear("mlp.down_proj"), full});
  }
}

// Rows are in window order. The patches of a merged patch stay adjacent, and windows stay within
// their item, so the items' segments are valid in both orders.
struct Qwen2_5VlVisionTower::Run {
  std::vector<VisualItem> items;
  QwenVisionRows rows;
  at::Tensor order;  // merged patches: position i holds order[i]
  at::Tensor place;  // patches: patch i is at place[i]
  CosSin angles;
  TowerAttention frames, windows;
  at::Tensor x;       // [patches, width]
  at::Tensor merged;  // [tokens, out], in the order of the items
};

std::shared_ptr<Qwen2_5VlVisionTower::Run> Qwen2_5VlVisionTower::make_run(
    std::vector<VisualItem> items) const {
  const Config& c = config_;
  check_patches(items, c.patch_dim());
  QwenVisionRows rows = qwen_vision_rows(items, c.merge);
  const WindowOrder windows = window_order(items, c.merge, c.window_side());
  const std::vector<int64_t> frames = frame_ends(items);
  const at::Tensor order = at::tensor(windows.order, at::kLong).to(device_);
  const int64_t patches = frames.back(), unit = c.merge * c.merge;
  const auto into_windows = [&](const at::Tensor& x) {
    return x.view({-1, unit * x.size(1)}).index_select(0, order).view({-1, x.size(1)});
  };
  const at::Tensor patch =
      at::arange(patches, at::TensorOptions().dtype(at::kLong).device(device_));
  const at::Tensor place =
      at::empty_like(patch).index_copy_(0, into_windows(patch.unsqueeze(1)).squeeze(1), patch);
  const CosSin angles = patch_rotary(items, c.merge, c.width / c.heads, device_);
  const auto options = at::TensorOptions().dtype(dtype_).device(device_);
  return std::make_shared<Run>(Run{std::move(items),
                                   std::move(rows),
                                   order,
                                   place,
                                   {into_windows(angles.cos), into_windows(angles.sin)},
                                   TowerAttention(frames, c.heads, c.width, dtype_, device_),
                                   TowerAttention(windows.ends, c.heads, c.width, dtype_, device_),
                                   at::empty({patches, c.width}, options),
                                   at::empty({patches / unit, c.out}, options)});
}

// Two stages, because a row needs the keys of its attention range but nothing else from other rows.
void Qwen2_5VlVisionTower::add_block(const Qwen2_5VlVisionBlock& block,
                                     const std::shared_ptr<Run>& run, Encoding& encoding) const {
  TowerAttention& attention = block.full ? run->frames : run->windows;
  const int64_t patches = run->x.size(0);
  encoding.add(
      {patches, products_of({&block.qkv}), [run, &block, &attention](int64_t begin, int64_t end) {
         const at::Tensor x = block.norm1(as_read(run->x.slice(0, begin, end)));
         attention.store_rotated(begin, block.qkv(x, run->rows.patch_adaptation.part(begin, end)),
                                 run->angles);
       }});
  encoding.add({patches,
                attention.products() +
                    products_of({&block.proj, &block.gate_proj, &block.up_proj, &block.down_proj}),
                [this, run, &block, &attention](int64_t begin, int64_t end) {
                  const Adaptation adaptation = run->rows.patch_adaptation.part(begin, end);
                  const at::Tensor x = run->x.slice(0, begin, end);
                  x.add_(block.proj(attention.attend(begin, end), adaptation));
                  const at::Tensor inner = gated_by(block.norm2(as_read(x)), block.gate_proj,
                                                    block.up_proj, config_.activation, adaptation);
                  x.add_(block.down_proj(inner, adaptation));
                }});
}

std::unique_ptr<Encoding> Qwen2_5VlVisionTower::begin(std::vector<VisualItem> items,
                                                      PieceSize pieces) const {
  const auto run = make_run(std::move(items));
  const int64_t patches = run->x.size(0), unit = config_.merge * config_.merge;
  auto encoding = std::make_unique<Encoding>(pieces);
  encoding->add({patches, products_of({&patch_embed_}), [this, run](int64_t begin, int64_t end) {
                   run->x.index_copy_(
                       0, run->place.slice(0, begin, end),
                       patch_embed_(patch_rows(run->items, begin, end, dtype_, device_)));
                 }});
  for (const Qwen2_5VlVisionBlock& block : blocks_) add_block(block, run, *encoding);
  encoding->add({patches / unit, merger_.products(), [this, run, unit](int64_t begin, int64_t end) {
                   const at::Tensor x = ln_q_(run->x.slice(0, begin * unit, end * unit));
                   run->merged.index_copy_(0, run->order.slice(0, begin, end),
                                           merger_(x, run->rows.token_adaptation.part(begin, end)));
                 }});
  encoding->finish_with([run] { return split_items(run->merged, run->rows.tokens); });
  return encoding;
}

}  // namespace valora::models
