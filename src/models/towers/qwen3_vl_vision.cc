#include "models/towers/qwen3_vl_vision.h"

#include <algorithm>

#include "models/decoder/layers.h"

namespace valora::models {
namespace {

void add_merger_modules(const Qwen3VlVisionConfig& c, const std::string& name,
                        std::vector<adapters::Module>& modules) {
  const int64_t merged = c.width * c.merge * c.merge;
  modules.push_back({name + ".linear_fc1", merged, merged, -1, true});
  modules.push_back({name + ".linear_fc2", merged, c.out, -1, true});
}

// Positions of a picture's `count` patches along one axis, spread evenly over the learned grid from
// end to end.
struct AxisPlaces {
  std::vector<int64_t> first, second;  // the neighbours in the learned grid
  std::vector<float> share;            // weight of the second
};

AxisPlaces axis_places(int64_t count, int64_t side) {
  const at::Tensor spread = at::linspace(0, static_cast<double>(side - 1), count, at::kFloat);
  AxisPlaces places;
  for (int64_t i = 0; i < count; ++i) {
    const float at = spread.const_data_ptr<float>()[i];
    places.first.push_back(static_cast<int64_t>(at));
    places.second.push_back(std::min(places.first.back() + 1, side - 1));
    places.share.push_back(at - static_cast<float>(places.first.back()));
  }
  return places;
}

// Appends the patches of one frame, in order of merge blocks.
void append_frame(const AxisPlaces& rows, const AxisPlaces& columns, int64_t merge, int64_t side,
                  std::vector<int64_t> (&index)[4], std::vector<float> (&weight)[4]) {
  const auto h = static_cast<int64_t>(rows.first.size()),
             w = static_cast<int64_t>(columns.first.size());
  for (int64_t block = 0; block < h * w; block += merge * merge)
    for (int64_t within = 0; within < merge * merge; ++within) {
      const int64_t blocks = block / (merge * merge),
                    y = blocks / (w / merge) * merge + within / merge,
                    x = blocks % (w / merge) * merge + within % merge;
      const float down = rows.share[y], across = columns.share[x];
      index[0].push_back(rows.first[y] * side + columns.first[x]);
      index[1].push_back(rows.first[y] * side + columns.second[x]);
      index[2].push_back(rows.second[y] * side + columns.first[x]);
      index[3].push_back(rows.second[y] * side + columns.second[x]);
      weight[0].push_back((1 - down) * (1 - across));
      weight[1].push_back((1 - down) * across);
      weight[2].push_back(down * (1 - across));
      weight[3].push_back(down * across);
    }
}

}  // namespace

SquarePlaces square_places(std::span<const VisualItem> items, int64_t merge, int64_t side,
                           at::Device device) {
  std::vector<int64_t> index[4];
  std::vector<float> weight[4];
  for (const VisualItem& item : items) {
    const AxisPlaces rows = axis_places(item.input->grid_h, side),
                     columns = axis_places(item.input->grid_w, side);
    for (int t = 0; t < item.input->grid_t; ++t)
      append_frame(rows, columns, merge, side, index, weight);
  }
  std::vector<at::Tensor> all_indices, all_weights;
  for (int k = 0; k < 4; ++k) {
    all_indices.push_back(at::tensor(index[k], at::kLong));
    all_weights.push_back(at::tensor(weight[k], at::kFloat));
  }
  return {at::stack(all_indices).to(device), at::stack(all_weights).to(device)};
}

at::Tensor Qwen3VlMerger::operator()(const at::Tensor& x, const Adaptation& adaptation) const {
  const int64_t merged = fc1.weight().in();
  const at::Tensor rows =
      norm_of_merged ? norm(x.reshape({-1, merged})) : norm(x).reshape({-1, merged});
  return fc2(at::gelu(fc1(rows, adaptation)), adaptation);
}

Qwen3VlVisionConfig Qwen3VlVisionTower::read_config(const ConfigReader& vision, bool deepstack) {
  Config c;
  vision.refuse_changed_layers();
  c.depth = vision.at_most("depth", kMaxLayers, 27);
  c.width = vision.at_most("hidden_size", kMaxVisionWidth, 1152);
  c.heads = vision.integer("num_heads", 16);
  c.mlp = vision.at_most("intermediate_size", kMaxVisionWidth, 4304);
  c.out = vision.integer("out_hidden_size", 3584);
  c.patch = vision.at_most("patch_size", kMaxVisionSide, 16);
  c.temporal_patch = vision.at_most("temporal_patch_size", kMaxVisionSide, 2);
  c.merge = vision.at_most("spatial_merge_size", kMaxVisionSide, 2);
  const int64_t positions = vision.at_most("num_position_embeddings", 1 << 20, 2304);
  while ((c.side + 1) * (c.side + 1) <= positions) ++c.side;
  if (c.side * c.side != positions)
    vision.refuse("\"num_position_embeddings\" is not the square of a whole number");
  if (deepstack)
    c.deep = vision.has("deepstack_visual_indexes") ? vision.integers("deepstack_visual_indexes")
                                                    : std::vector<int64_t>{8, 16, 24};
  for (size_t i = 0; i < c.deep.size(); ++i)
    if (c.deep[i] < 0 || c.deep[i] >= c.depth || (i > 0 && c.deep[i] <= c.deep[i - 1]))
      vision.refuse("\"deepstack_visual_indexes\" must name blocks of the tower in their order");
  c.activation = read_activation(vision, "hidden_act", "gelu_pytorch_tanh");
  if (vision.integer("in_channels", c.channels) != c.channels)
    vision.refuse("\"in_channels\" must be 3");
  check_rotary_heads(vision, c.width, c.heads);
  return c;
}

void Qwen3VlVisionTower::add_modules(const Config& c, const std::string& prefix,
                                     std::vector<adapters::Module>& modules) {
  for (int64_t i = 0; i < c.depth; ++i) {
    const std::string block = prefix + "blocks." + std::to_string(i) + ".";
    modules.push_back({block + "attn.qkv", c.width, 3 * c.width, i, true});
    modules.push_back({block + "attn.proj", c.width, c.width, i, true});
    modules.push_back({block + "mlp.linear_fc1", c.width, c.mlp, i, true});
    modules.push_back({block + "mlp.linear_fc2", c.mlp, c.width, i, true});
  }
  add_merger_modules(c, prefix + "merger", modules);
  for (size_t i = 0; i < c.deep.size(); ++i)
    add_merger_modules(c, prefix + "deepstack_merger_list." + std::to_string(i), modules);
  modules.push_back({prefix + "patch_embed.proj", c.patch_dim(), c.width, -1, true,
                     adapters::ModuleKind::kOther});
  modules.push_back(
      {prefix + "pos_embed", c.side * c.side, c.width, -1, true, adapters::ModuleKind::kOther});
}

Qwen3VlVisionTower::Qwen3VlVisionTower(Weights& weights, const adapters::ModuleTable& modules,
                                       const std::string& prefix, const Qwen3VlVisionConfig& c,
                                       at::Device device)
    : config_(c),
      device_(device),
      dtype_(weights.dtype()),
      patch_embed_(patch_embedding(weights, prefix + "patch_embed.proj", c.width,
                                   {c.channels, c.temporal_patch, c.patch, c.patch})),
      patch_bias_(weights.get(prefix + "patch_embed.proj.bias", {c.width})),
      pos_embed_(weights.get(prefix + "pos_embed.weight", {c.side * c.side, c.width})) {
  for (int64_t i = 0; i < c.depth; ++i)
    blocks_.push_back(read_qwen_vision_block(weights, modules,
                                             prefix + "blocks." + std::to_string(i) + ".", c.width,
                                             "mlp.linear_fc1", "mlp.linear_fc2"));
  const auto linear = [&](const std::string& name) {
    return table_linear(weights, modules, name, true);
  };
  const auto merger = [&](const std::string& name, bool norm_of_merged) {
    const int64_t width = norm_of_merged ? c.width * c.merge * c.merge : c.width;
    return Qwen3VlMerger{LayerNorm(weights, name + ".norm", width, kQwenVisionNormEps),
                         norm_of_merged, linear(name + ".linear_fc1"),
                         linear(name + ".linear_fc2")};
  };
  merger_ = merger(prefix + "merger", false);
  for (size_t i = 0; i < c.deep.size(); ++i)
    deep_mergers_.push_back(merger(prefix + "deepstack_merger_list." + std::to_string(i), true));
}

struct Qwen3VlVisionTower::Run : QwenVisionRun {
  SquarePlaces places;
};

at::Tensor Qwen3VlVisionTower::positions(const SquarePlaces& places, int64_t begin,
                                         int64_t end) const {
  at::Tensor sum;
  for (int64_t k = 0; k < places.index.size(0); ++k) {
    const at::Tensor part = at::embedding(pos_embed_, places.index[k].slice(0, begin, end))
                                .to(at::kFloat)
                                .mul(places.weight[k].slice(0, begin, end).unsqueeze(1));
    sum = sum.defined() ? sum.add_(part) : part;
  }
  return sum;
}

void Qwen3VlVisionTower::add_merger(const Qwen3VlMerger& merger, int64_t column,
                                    const std::shared_ptr<Run>& run, Encoding& encoding) const {
  const int64_t unit = config_.merge * config_.merge;
  encoding.add({run->merged.size(0), products_of({&merger.fc1, &merger.fc2}),
                [this, run, &merger, column, unit](int64_t begin, int64_t end) {
                  const at::Tensor x = as_read(run->x.slice(0, begin * unit, end * unit));
                  run->merged.slice(0, begin, end)
                      .narrow(1, column * config_.out, config_.out)
                      .copy_(merger(x, run->rows.token_adaptation.part(begin, end)));
                }});
}

std::unique_ptr<Encoding> Qwen3VlVisionTower::begin(std::vector<VisualItem> items,
                                                    PieceSize pieces) const {
  const Config& c = config_;
  check_patches(items, c.patch_dim());
  QwenVisionRows rows = qwen_vision_rows(items, c.merge);
  const std::vector<int64_t> frames = frame_ends(items);
  CosSin angles = patch_rotary(items, c.merge, c.width / c.heads, device_);
  SquarePlaces places = square_places(items, c.merge, c.side, device_);
  const auto options = at::TensorOptions().dtype(dtype_).device(device_);
  const int64_t patches = frames.back(), unit = c.merge * c.merge;
  const auto run =
      std::make_shared<Run>(Run{{std::move(items), std::move(rows), std::move(angles),
                                 TowerAttention(frames, c.heads, c.width, dtype_, device_),
                                 at::empty({patches, c.width}, options),
                                 at::empty({patches / unit, c.out * (1 + c.levels())}, options)},
                                std::move(places)});
  auto encoding = std::make_unique<Encoding>(pieces);
  encoding->add({patches, products_of({&patch_embed_}), [this, run](int64_t begin, int64_t end) {
                   const at::Tensor x =
                       patch_embed_(patch_rows(run->items, begin, end, dtype_, device_));
                   run->x.slice(0, begin, end)
                       .copy_(positions(run->places, begin, end).add_(x).add_(patch_bias_));
                 }});
  for (size_t i = 0; i < blocks_.size(); ++i) {
    add_qwen_vision_block(blocks_[i], c.activation, run, *encoding);
    const auto deep = std::ranges::find(c.deep, static_cast<int64_t>(i));
    if (deep == c.deep.end()) continue;
    const int64_t index = deep - c.deep.begin();
    add_merger(deep_mergers_[static_cast<size_t>(index)], 1 + index, run, *encoding);
  }
  add_merger(merger_, 0, run, *encoding);
  encoding->finish_with([run] { return split_items(run->merged, run->rows.tokens); });
  return encoding;
}

}  // namespace valora::models
