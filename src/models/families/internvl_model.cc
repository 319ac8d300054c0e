#include "models/families/internvl_model.h"

#include <utility>

#include <fmt/format.h>

#include "models/decoder/decoder_config.h"
#include "models/decoder/layers.h"
#include "models/families/causal_lm.h"

namespace valora::models {
namespace {

constexpr double kProjectorEps = 1e-5;  // torch's default

class InternVlVision final : public VisionEncoder {
 public:
  InternVlVision(const adapters::ModuleTable& modules, const InternVlConfig& c,
                 const InternVlNames& names, Weights& weights, at::Device device)
      : config_(c),
        tower_(weights, modules, *names.vision, names.tower, c.vision, c.depth, device),
        norm_(weights, names.norm, c.merged_width(), kProjectorEps),
        linear_1_(table_linear(weights, modules, names.linear_1, true)),
        linear_2_(table_linear(weights, modules, names.linear_2, true)) {}

  std::unique_ptr<Encoding> begin(std::vector<VisualItem> items, PieceSize pieces) const override {
    const auto tower = tower_.begin(std::move(items), config_.merge);
    auto encoding = std::make_unique<Encoding>(pieces);
    tower_.add_stages(tower, *encoding);
    add_projector(tower, *encoding);
    return encoding;
  }

 private:
  struct Tokens {
    std::vector<int64_t> rows;  // per item
    Adaptation adaptation;
    at::Tensor features;  // [tokens, merge² · width]: each token's patches concatenated
    at::Tensor out;       // [tokens, hidden]
  };

  // The patches of a merge block are adjacent rows, so joining them is a view.
  at::Tensor features(const InternVisionTower::Run& tower) const {
    const int64_t side = tower.side / config_.merge;
    const at::Tensor patches = tower.x.view({tower.tiles, tower.rows_of_tile(), -1}).slice(1, 1);
    const at::Tensor tokens = patches.reshape({tower.tiles, side, side, config_.merged_width()});
    return (config_.transposed ? tokens.transpose(1, 2) : tokens)
        .reshape({-1, config_.merged_width()});
  }

  void add_projector(const std::shared_ptr<InternVisionTower::Run>& tower,
                     Encoding& encoding) const {
    const int64_t side = tower->side / config_.merge, tokens = tower->tiles * side * side;
    const auto run = std::make_shared<Tokens>();
    for (const VisualItem& item : tower->items)
      run->rows.push_back(item.input->grid_t * side * side);
    run->adaptation = item_adaptation(tower->items, run->rows);
    run->out = at::empty({tokens, linear_2_.weight().out()}, tower->x.options());
    encoding.add(
        {1, 0, [this, tower, run](int64_t, int64_t) { run->features = features(*tower); }});
    encoding.add(
        {tokens, products_of({&linear_1_, &linear_2_}), [this, run](int64_t begin, int64_t end) {
           const Adaptation adaptation = run->adaptation.part(begin, end);
           const at::Tensor x = linear_1_(joined(run->features.slice(0, begin, end)), adaptation);
           run->out.slice(0, begin, end)
               .copy_(linear_2_(activate(x, config_.projector_activation), adaptation));
         }});
    encoding.finish_with([run] { return split_items(run->out, run->rows); });
  }

  // The tokens as input of the projector's first linear.
  at::Tensor joined(const at::Tensor& tokens) const {
    if (!config_.normalised) return norm_(tokens);
    const at::Tensor patches = tokens.reshape({-1, config_.vision.width});
    return norm_(tower_.normalised(patches).reshape(tokens.sizes()));
  }

  InternVlConfig config_;
  InternVisionTower tower_;
  LayerNorm norm_;
  Linear linear_1_, linear_2_;
};

}  // namespace

int64_t read_merge(const ConfigReader& config) {
  const double ratio = config.number("downsample_ratio", 0.5);
  for (int64_t merge = 1; merge <= 64; merge *= 2)
    if (ratio == 1.0 / static_cast<double>(merge)) return merge;
  config.refuse("\"downsample_ratio\" must be 1, or 1 over a power of two up to 64");
}

void read_feature_layer(const ConfigReader& config, const std::string& key, InternVlConfig& c) {
  const int64_t layers = c.vision.layers;
  int64_t index = -1;
  if (config.has(key)) {
    if (!config.json().at(key).is_number_integer())
      config.refuse("\"" + key + "\" must be the index of one layer");
    index = config.json().at(key).get<int64_t>();
  }
  if (index > layers || index < -layers - 1)
    config.refuse("\"" + key + "\" names a layer that the vision tower does not have");
  c.normalised = index == -1;
  c.depth = index < 0 ? layers + 1 + index : index;
}

DecoderConfig read_internvl_decoder(const ConfigReader& text, const ConfigReader& top) {
  return read_text_decoder(text, top, {"qwen2", "qwen3", "llama"});
}

ModelSpec internvl_model_spec(const InternVlConfig& c, const InternVlNames& names,
                              std::vector<adapters::PrefixAlias> aliases) {
  ModelSpec spec = decoder_spec(c.decoder, names.architecture);
  spec.visual_merge = static_cast<int>(c.merge);
  spec.aliases = std::move(aliases);
  std::vector<adapters::Module> modules;
  add_decoder_modules(c.decoder, names.language, modules);
  add_intern_vision_modules(c.vision, *names.vision, names.tower, modules);
  modules.push_back({names.linear_1, c.merged_width(), c.decoder.hidden, -1, true});
  modules.push_back({names.linear_2, c.decoder.hidden, c.decoder.hidden, -1, true});
  modules.push_back(head_module(c.decoder, names.head));
  spec.modules = adapters::ModuleTable(std::move(modules), spec.aliases, c.decoder.hidden);
  return spec;
}

std::unique_ptr<Model> make_internvl_model(ModelSpec spec, const InternVlConfig& config,
                                           const InternVlNames& names, Weights& weights,
                                           at::Device device) {
  auto vision = std::make_unique<InternVlVision>(spec.modules, config, names, weights, device);
  return make_vision_language_model(std::move(spec), std::move(vision), config.decoder,
                                    names.language, names.head, weights, device);
}

std::string internvl_media_text(const media::VisualInput& input) {
  const bool video = input.kind == media::MediaKind::kVideo;
  std::string text = video ? "" : "<img>";
  for (int i = 0; i < input.grid_t; ++i) {
    if (video && i > 0) text += "\n";
    text += video ? fmt::format("Frame{}: <img><IMG_CONTEXT></img>", i + 1) : "<IMG_CONTEXT>";
  }
  return video ? text : text + "</img>";
}

}  // namespace valora::models
