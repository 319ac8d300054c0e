#include "models/towers/qwen1_vision.h"

#include <cmath>

#include "models/decoder/layers.h"

namespace valora::models {
namespace {

constexpr int64_t kLearnedPositions = 256;
constexpr double kTowerEps = 1e-6;

std::string qwen1_block(const std::string& prefix, int64_t index) {
  return prefix + "transformer.resblocks." + std::to_string(index) + ".";
}

}  // namespace

Qwen1VisionConfig read_qwen1_vision_config(const ConfigReader& visual) {
  Qwen1VisionConfig c;
  c.width = visual.at_most("width", kMaxVisionWidth);
  c.layers = visual.at_most("layers", kMaxLayers);
  c.heads = visual.integer("heads");
  c.image = visual.at_most("image_size", 1 << 13);
  c.patch = visual.at_most("patch_size", kMaxVisionSide);
  const double ratio = visual.number("mlp_ratio", 0);
  if (!(ratio > 0 && ratio * static_cast<double>(c.width) <= kMaxVisionWidth &&
        ratio * static_cast<double>(c.width) >= 1))
    visual.refuse("\"mlp_ratio\" is missing or out of range");
  c.intermediate = static_cast<int64_t>(static_cast<double>(c.width) * ratio);
  if (c.width % c.heads != 0) visual.refuse("\"width\" is not a multiple of \"heads\"");
  if (c.patch > c.image) visual.refuse("\"patch_size\" exceeds \"image_size\"");
  ResamplerConfig& r = c.resampler;
  r.width = visual.at_most("output_dim", kMaxVisionWidth, 512);
  r.patch_width = c.width;
  r.patches = c.side() * c.side();
  const int64_t queries = visual.at_most("n_queries", 1 << 16, 256);
  const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(queries)));
  if (root * root != queries) visual.refuse("\"n_queries\" must be a square");
  r.queries = queries;
  r.norm_eps = kTowerEps;
  if (r.width % ResamplerConfig::kHeadSize != 0)
    visual.refuse("\"output_dim\" must be a multiple of 128, the resampler's head size");
  return c;
}

void add_qwen1_vision_modules(const Qwen1VisionConfig& c, const std::string& prefix,
                              std::vector<adapters::Module>& modules) {
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string block = qwen1_block(prefix, i);
    modules.push_back({block + "attn.in_proj", c.width, 3 * c.width, i, true});
    modules.push_back({block + "attn.out_proj", c.width, c.width, i, true});
    modules.push_back({block + "mlp.c_fc", c.width, c.intermediate, i, true});
    modules.push_back({block + "mlp.c_proj", c.intermediate, c.width, i, true});
  }
  modules.push_back(
      {prefix + "conv1", 3 * c.patch * c.patch, c.width, -1, true, adapters::ModuleKind::kOther});
  add_resampler_modules(c.resampler, prefix, modules);
}

Qwen1VisionTower::Qwen1VisionTower(Weights& weights, const adapters::ModuleTable& modules,
                                   const std::string& prefix, const Qwen1VisionConfig& c,
                                   at::Device device)
    : config_(c),
      device_(device),
      dtype_(weights.dtype()),
      conv1_(patch_embedding(weights, prefix + "conv1", c.width, {3, c.patch, c.patch})),
      positions_(interpolated_positions(
          weights.get(prefix + "positional_embedding", {kLearnedPositions, c.width}),
          c.resampler.patches)),
      ln_pre_(weights, prefix + "ln_pre", c.width, kTowerEps),
      resampler_(weights, modules, prefix, c.resampler) {
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string block = qwen1_block(prefix, i);
    const auto linear = [&](const char* name) {
      return table_linear(weights, modules, block + name, true);
    };
    layers_.push_back({LayerNorm(weights, block + "ln_1", c.width, kTowerEps),
                       LayerNorm(weights, block + "ln_2", c.width, kTowerEps),
                       linear("attn.in_proj"), linear("attn.out_proj"), linear("mlp.c_fc"),
                       linear("mlp.c_proj")});
  }
}

std::unique_ptr<Encoding> Qwen1VisionTower::begin(std::vector<VisualItem> items,
                                                  PieceSize pieces) const {
  check_patches(items, 3 * config_.patch * config_.patch);
  const int64_t each = config_.resampler.patches;
  std::vector<int64_t> rows, ends;
  for (const VisualItem& item : items) {
    check_tiles(*item.input, config_.side());
    TORCH_CHECK(item.input->grid_t == 1, "Qwen-VL takes single pictures");
    rows.push_back(each);
    ends.push_back(static_cast<int64_t>(rows.size()) * each);
  }
  Adaptation adaptation = item_adaptation(items, rows);
  const auto pictures = static_cast<int64_t>(items.size());
  const auto run = std::make_shared<PatchRun>(PatchRun{
      std::move(items), std::move(adaptation),
      TowerAttention(ends, config_.heads, config_.width, dtype_, device_),
      at::empty({ends.back(), config_.width}, at::TensorOptions().dtype(dtype_).device(device_))});
  auto encoding = std::make_unique<Encoding>(pieces);
  encoding->add(
      {pictures, products_of({&conv1_}) * static_cast<double>(each),
       [this, run, each](int64_t begin, int64_t end) {
         const at::Tensor patches =
             conv1_(patch_rows(run->items, begin * each, end * each, dtype_, device_));
         const at::Tensor placed = patches.view({end - begin, each, -1}) + positions_;
         run->x.slice(0, begin * each, end * each).copy_(ln_pre_(placed.view({-1, config_.width})));
       }});
  for (const Layer& layer : layers_) add_layer(layer, run, *encoding);
  resampler_.add_stages(run, *encoding);
  return encoding;
}

void Qwen1VisionTower::add_layer(const Layer& layer, const std::shared_ptr<PatchRun>& run,
                                 Encoding& encoding) const {
  const int64_t rows = run->x.size(0), heads = config_.heads, dim = config_.width / heads;
  encoding.add(
      {rows, products_of({&layer.in_proj}), [run, &layer, heads, dim](int64_t begin, int64_t end) {
         const at::Tensor x = layer.ln_1(as_read(run->x.slice(0, begin, end)));
         const at::Tensor qkv =
             layer.in_proj(x, run->adaptation.part(begin, end)).view({-1, heads, 3 * dim});
         const auto part = [&](int64_t i) { return qkv.narrow(2, i * dim, dim).contiguous(); };
         run->attention.keep(begin, part(0), part(1), part(2));
       }});
  encoding.add(
      {rows, run->attention.products() + products_of({&layer.out_proj, &layer.c_fc, &layer.c_proj}),
       [run, &layer](int64_t begin, int64_t end) {
         const Adaptation adaptation = run->adaptation.part(begin, end);
         const at::Tensor x = run->x.slice(0, begin, end);
         x.add_(layer.out_proj(run->attention.attend(begin, end), adaptation));
         const at::Tensor inner = layer.c_fc(layer.ln_2(as_read(x)), adaptation);
         x.add_(layer.c_proj(at::gelu(inner), adaptation));
       }});
}

}  // namespace valora::models
