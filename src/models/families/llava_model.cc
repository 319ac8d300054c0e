#include "models/families/llava_model.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "media/processors/anyres_grid.h"
#include "models/decoder/decoder_config.h"
#include "models/decoder/layers.h"
#include "models/families/causal_lm.h"

namespace valora::models {
namespace {

constexpr char kLanguage[] = "model.language_model.";
constexpr char kTower[] = "model.vision_tower.";
constexpr char kProjector[] = "model.multi_modal_projector.";
constexpr char kMerger[] = "model.multi_modal_projector.patch_merger.merging_layer";
constexpr char kNewline[] = "model.image_newline";

// The tower's module names in transformers 4.52 to 4.57. Since 5, no tower has "vision_model.".
std::string tower_prefix(const LlavaConfig& c) {
  const bool pixtral = std::holds_alternative<PixtralVisionConfig>(c.vision);
  return std::string(kTower) + (pixtral ? "" : "vision_model.");
}

int64_t visual_width(const LlavaConfig& c) {
  return c.tower().width * static_cast<int64_t>(c.states.size());
}

// vision_feature_layer: index of a hidden state, negative from the end.
std::vector<int64_t> read_feature_layers(const ConfigReader& config, int64_t layers,
                                         int64_t fallback) {
  const Json value = config.has("vision_feature_layer") ? config.json().at("vision_feature_layer")
                                                        : Json(fallback);
  const Json list = value.is_array() ? value : Json::array({value});
  if (list.empty() || list.size() > 64)
    config.refuse("\"vision_feature_layer\" must name 1 to 64 layers");
  std::vector<int64_t> states;
  for (const Json& entry : list) {
    const int64_t layer = entry.is_number_integer() ? entry.get<int64_t>() : layers + 1;
    if (layer > layers || layer < -layers - 1)
      config.refuse("\"vision_feature_layer\" names a layer that the vision tower does not have");
    states.push_back(layer < 0 ? layers + 1 + layer : layer);
  }
  return states;
}

decltype(LlavaConfig::vision) read_tower(const ConfigReader& vision,
                                         const std::vector<const char*>& types) {
  const std::string type = vision.text("model_type", types.front());
  if (std::ranges::find(types, type) == types.end())
    vision.refuse(fmt::format("a vision tower of type \"{}\" is not supported, only {}", type,
                              fmt::join(types, ", ")));
  if (type == "clip_vision_model") return read_clip_vision_config(vision);
  if (type == "pixtral") return read_pixtral_vision_config(vision);
  return read_plain_siglip_config(vision);
}

using LlavaTower = std::variant<ClipVisionTower, SiglipVisionTower, PixtralVisionTower>;

LlavaTower make_tower(Weights& weights, const adapters::ModuleTable& modules, const LlavaConfig& c,
                      at::Device device) {
  const int64_t depth = *std::ranges::max_element(c.states);
  if (const auto* clip = std::get_if<ClipVisionConfig>(&c.vision))
    return ClipVisionTower(weights, modules, tower_prefix(c), *clip, depth, device);
  if (const auto* pixtral = std::get_if<PixtralVisionConfig>(&c.vision))
    return PixtralVisionTower(weights, modules, kTower, *pixtral, depth, c.merge, device);
  return SiglipVisionTower(weights, modules, tower_prefix(c),
                           std::get<SiglipVisionConfig>(c.vision), {.depth = depth}, device);
}

class LlavaVision final : public VisionEncoder {
 public:
  LlavaVision(const adapters::ModuleTable& modules, const LlavaConfig& c, Weights& weights,
              at::Device device)
      : config_(c),
        vision_tower_(make_tower(weights, modules, c, device)),
        linear_1_(
            table_linear(weights, modules, std::string(kProjector) + "linear_1", c.projector_bias)),
        linear_2_(table_linear(weights, modules, std::string(kProjector) + "linear_2",
                               c.projector_bias)) {
    if (c.newline) newline_ = weights.get(kNewline, {c.decoder.hidden});
    if (!c.merges) return;
    norm_ = RmsNorm(weights, std::string(kProjector) + "norm", c.tower().width, c.decoder.norm_eps);
    merging_layer_ = table_linear(weights, modules, kMerger, false);
  }

  std::unique_ptr<Encoding> begin(std::vector<VisualItem> items, PieceSize pieces) const override {
    auto encoding = std::make_unique<Encoding>(pieces);
    const auto tower = std::visit(
        [&](const auto& one) { return one.begin(std::move(items), config_.states, *encoding); },
        vision_tower_);
    add_projector(tower, *encoding);
    return encoding;
  }

 private:
  struct Projection {
    std::vector<int64_t> rows;  // tokens per item
    Adaptation adaptation;
    at::Tensor features;  // [patches, visual width]
    at::Tensor out;       // [tokens, hidden]
  };

  // The tower's states concatenated, with class tokens only if they are kept.
  at::Tensor features(const TowerStates& tower) const {
    const int64_t width = visual_width(config_);
    at::Tensor x = at::cat(tower.states, 1);
    if (!config_.has_class() || config_.keeps_class) return x;
    const int64_t side = config_.tower().side();
    return x.view({-1, side * side + 1, width}).slice(1, 1).reshape({-1, width});
  }
  int64_t tokens_of(const media::VisualInput& input) const {
    const bool keeps_class = config_.has_class() && config_.keeps_class;
    return (input.patch_count() + (keeps_class ? input.grid_t : 0)) / unit();
  }
  int64_t unit() const { return config_.merge * config_.merge; }

  // The features of tokens [begin, end), whose merge blocks are adjacent rows. A merged token holds
  // the block's values channel by channel.
  at::Tensor merged(const Projection& run, int64_t begin, int64_t end,
                    const Adaptation& adaptation) const {
    at::Tensor x = run.features.slice(0, begin * unit(), end * unit());
    if (!config_.merges) return x;
    const at::Tensor blocks = norm_(x).view({end - begin, unit(), -1}).transpose(1, 2);
    return merging_layer_(blocks.reshape({end - begin, -1}), adaptation);
  }

  void add_projector(const std::shared_ptr<TowerStates>& tower, Encoding& encoding) const {
    int64_t tokens = 0;
    const auto run = std::make_shared<Projection>();
    for (const VisualItem& item : tower->items) {
      run->rows.push_back(tokens_of(*item.input));
      tokens += run->rows.back();
    }
    run->adaptation = item_adaptation(tower->items, run->rows);
    run->out = at::empty({tokens, linear_2_.weight().out()}, tower->options);
    encoding.add(
        {1, 0, [this, tower, run](int64_t, int64_t) { run->features = features(*tower); }});
    double products = products_of({&linear_1_, &linear_2_});
    if (config_.merges) products += products_of({&merging_layer_});
    encoding.add({tokens, products, [this, run](int64_t begin, int64_t end) {
                    const Adaptation adaptation = run->adaptation.part(begin, end);
                    const at::Tensor x =
                        linear_1_(merged(*run, begin, end, adaptation), adaptation);
                    run->out.slice(0, begin, end)
                        .copy_(linear_2_(activate(x, config_.projector_activation), adaptation));
                  }});
    encoding.finish_with([this, tower, run] {
      std::vector<at::Tensor> parts = split_items(run->out, run->rows);
      if (!config_.newline) return parts;
      for (size_t i = 0; i < parts.size(); ++i)
        parts[i] =
            with_newlines(parts[i], *tower->items[i].input, config_.tower().side(), newline_);
      return parts;
    });
  }

  LlavaConfig config_;
  LlavaTower vision_tower_;
  RmsNorm norm_;
  Linear merging_layer_, linear_1_, linear_2_;
  at::Tensor newline_;  // [hidden]
};

}  // namespace

LlavaConfig read_llava_config(const ConfigReader& config, const LlavaDefaults& defaults) {
  LlavaConfig c;
  c.decoder = read_text_decoder(config.child("text_config"), config, defaults.decoders);
  c.vision = read_tower(config.child("vision_config"), defaults.towers);
  c.states = read_feature_layers(config, c.tower().layers, defaults.feature_layer);
  const std::string strategy =
      defaults.strategy ? config.text("vision_feature_select_strategy", defaults.strategy) : "full";
  if (strategy != "default" && strategy != "full")
    config.refuse("vision_feature_select_strategy \"" + strategy +
                  "\" is not supported, only default and full");
  c.keeps_class = strategy == "full";
  if (!c.has_class() && !c.keeps_class)
    config.refuse(
        "vision_feature_select_strategy \"default\" leaves out the class token, which the vision "
        "tower does not have");
  c.projector_bias = config.flag("multimodal_projector_bias", defaults.projector_bias);
  c.projector_activation = read_activation(config, "projector_hidden_act", "gelu");
  return c;
}

void read_pinpoints(const ConfigReader& config, LlavaConfig& c) {
  c.pinpoints = c.default_pinpoints;
  if (config.has("image_grid_pinpoints")) {
    auto read = media::parse_pinpoints(config.json().at("image_grid_pinpoints"));
    if (!read.ok()) config.refuse("\"image_grid_pinpoints\" " + read.error().message);
    c.pinpoints = std::move(read).value();
  }
  if (!media::fits(c.pinpoints, static_cast<int>(c.tower().image)))
    config.refuse("\"image_grid_pinpoints\" has sides that are not multiples of \"image_size\"");
}

int32_t llava_token(const ConfigReader& config, const std::string& kind, int64_t fallback) {
  return static_cast<int32_t>(
      config.integer(kind + "_token_index", config.integer(kind + "_token_id", fallback)));
}

ModelSpec llava_model_spec(const LlavaConfig& c, const std::string& architecture) {
  ModelSpec spec = decoder_spec(c.decoder, architecture);
  // Tensors, and modules before 4.52, lack "model.". The last entry is the language model alone.
  const std::string tower = tower_prefix(c);
  spec.aliases = {{"language_model.model.", kLanguage}, {"language_model.lm_head", "lm_head"}};
  if (tower != kTower) {
    spec.aliases.push_back({"vision_tower.vision_model.", tower});
    spec.aliases.push_back({kTower, tower});
  }
  spec.aliases.push_back({"vision_tower.", tower});
  spec.aliases.push_back({"multi_modal_projector.", kProjector});
  spec.aliases.push_back({"image_newline", kNewline});
  spec.aliases.push_back({"model.", kLanguage});
  spec.visual_merge = static_cast<int>(c.merge);
  std::vector<adapters::Module> modules;
  add_decoder_modules(c.decoder, kLanguage, modules);
  if (const auto* clip = std::get_if<ClipVisionConfig>(&c.vision))
    add_clip_vision_modules(*clip, tower, modules);
  else if (const auto* pixtral = std::get_if<PixtralVisionConfig>(&c.vision))
    add_pixtral_vision_modules(*pixtral, tower, modules);
  else
    add_siglip_vision_modules(std::get<SiglipVisionConfig>(c.vision), tower, modules);
  if (c.merges)
    modules.push_back({kMerger, c.tower().width * c.merge * c.merge, c.tower().width, -1, true});
  modules.push_back(
      {std::string(kProjector) + "linear_1", visual_width(c), c.decoder.hidden, -1, true});
  modules.push_back(
      {std::string(kProjector) + "linear_2", c.decoder.hidden, c.decoder.hidden, -1, true});
  modules.push_back(head_module(c.decoder, "lm_head"));
  spec.modules = adapters::ModuleTable(std::move(modules), spec.aliases, c.decoder.hidden);
  return spec;
}

std::unique_ptr<Model> make_llava_model(ModelSpec spec, const LlavaConfig& config, Weights& weights,
                                        at::Device device) {
  auto vision = std::make_unique<LlavaVision>(spec.modules, config, weights, device);
  return make_vision_language_model(std::move(spec), std::move(vision), config.decoder, kLanguage,
                                    "lm_head", weights, device);
}

Result<std::shared_ptr<const media::Processor>> llava_anyres_processor(
    const LlavaConfig& c, const media::ProcessorFiles& files) {
  return media::make_anyres_processor(files, {.image_size = static_cast<int>(c.tower().image),
                                              .patch_size = static_cast<int>(c.tower().patch),
                                              .pinpoints = c.pinpoints,
                                              .default_pinpoints = c.default_pinpoints,
                                              .most_tiles = c.most_tiles});
}

namespace {

// Resizes [n, rows, columns, hidden] to the given rows and columns, as interpolate() with mode
// "bilinear" does.
at::Tensor resized_grid(const at::Tensor& grid, int64_t rows, int64_t columns) {
  if (grid.size(1) == rows && grid.size(2) == columns) return grid;
  return at::upsample_bilinear2d(grid.permute({0, 3, 1, 2}), {rows, columns},
                                 /*align_corners=*/false)
      .permute({0, 2, 3, 1});
}

at::Tensor tile_rows(const at::Tensor& tiles, const media::VisualInput& input, int64_t side,
                     const at::Tensor& newline) {
  const int64_t rows = input.tile_rows * side, columns = input.tile_columns * side,
                hidden = tiles.size(-1);
  const media::UnpaddedTiles& kept = input.unpadded;
  const at::Tensor grid = tiles.view({input.tile_rows, input.tile_columns, side, side, hidden})
                              .permute({0, 2, 1, 3, 4})
                              .reshape({1, rows, columns, hidden})
                              .slice(1, kept.cut_rows, rows - kept.cut_rows)
                              .slice(2, kept.cut_columns, columns - kept.cut_columns);
  const at::Tensor ends = newline.expand({1, kept.rows, 1, hidden});
  return at::cat({resized_grid(grid, kept.rows, kept.columns), ends}, 2).reshape({-1, hidden});
}

}  // namespace

at::Tensor with_newlines(const at::Tensor& x, const media::VisualInput& input, int64_t side,
                         const at::Tensor& newline) {
  const int64_t each = side * side, hidden = x.size(-1), pooled = (side + 1) / 2;
  const at::Tensor end = newline.view({1, hidden});
  std::vector<at::Tensor> parts;
  if (input.kind == media::MediaKind::kVideo) {
    const at::Tensor frames = x.view({input.grid_t, side, side, hidden});
    parts = {resized_grid(frames, pooled, pooled).reshape({-1, hidden}), end};
  } else if (input.grid_t == 1) {
    parts = {x, end};
  } else {
    TORCH_CHECK(input.grid_t == 1 + int64_t{input.tile_rows} * input.tile_columns,
                "a picture needs 1 + ", input.tile_rows, " x ", input.tile_columns,
                " tiles, but has ", input.grid_t);
    parts = {x.slice(0, 0, each), tile_rows(x.slice(0, each), input, side, newline)};
  }
  const at::Tensor rows = at::cat(parts);
  TORCH_CHECK(rows.size(0) == input.tokens, "a picture yields ", rows.size(0), " rows for ",
              input.tokens, " tokens");
  return rows;
}

}  // namespace valora::models
