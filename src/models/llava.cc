#include "models/llava.h"

#include <algorithm>
#include <memory>

#include "models/causal_lm.h"
#include "models/clip_vision.h"
#include "models/llama.h"
#include "models/table_linear.h"
#include "text/chat_formats.h"

namespace valora::models {
namespace {

constexpr char kLanguage[] = "model.language_model.";
constexpr char kTower[] = "model.vision_tower.vision_model.";
constexpr char kProjector[] = "model.multi_modal_projector.";

struct LlavaConfig {
  DecoderConfig decoder;
  ClipVisionConfig vision;
  // Hidden states that the projector reads side by side; 0: the embeddings.
  std::vector<int64_t> states;
  bool keeps_class = false;  // vision_feature_select_strategy "full"
  bool projector_bias = true;
  Activation projector_activation = Activation::kGelu;
  int64_t visual_width() const { return vision.width * static_cast<int64_t>(states.size()); }
};

// vision_feature_layer: index of a hidden state, negative from the end.
std::vector<int64_t> read_feature_layers(const ConfigReader& config, int64_t layers) {
  const Json value =
      config.has("vision_feature_layer") ? config.json().at("vision_feature_layer") : Json(-2);
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

LlavaConfig read_config(const ConfigReader& config) {
  const ConfigReader text = config.child("text_config");
  if (const std::string type = text.text("model_type", "llama"); type != "llama")
    text.refuse("a language model of type \"" + type + "\" is not supported, only llama");
  LlavaConfig c;
  c.decoder = read_llama_config(text, config);
  c.vision = read_clip_vision_config(config.child("vision_config"));
  c.states = read_feature_layers(config, c.vision.layers);
  const std::string strategy = config.text("vision_feature_select_strategy", "default");
  if (strategy != "default" && strategy != "full")
    config.refuse("vision_feature_select_strategy \"" + strategy +
                  "\" is not supported, only default and full");
  c.keeps_class = strategy == "full";
  c.projector_bias = config.flag("multimodal_projector_bias", true);
  c.projector_activation = read_activation(config, "projector_hidden_act", "gelu");
  return c;
}

ModelSpec llava_spec(const ConfigReader& config) {
  const LlavaConfig c = read_config(config);
  ModelSpec spec = decoder_spec(c.decoder, "LlavaForConditionalGeneration");
  spec.image_token = static_cast<int32_t>(
      config.integer("image_token_index", config.integer("image_token_id", 32000)));
  // The modules' names of transformers 4.52 to 4.57. Tensors, and modules before 4.52, lack
  // "model."; since 5 the tower lacks "vision_model.". Last, the language model alone.
  spec.aliases = {{"language_model.model.", kLanguage},
                  {"language_model.lm_head", "lm_head"},
                  {"vision_tower.vision_model.", kTower},
                  {"model.vision_tower.", kTower},
                  {"vision_tower.", kTower},
                  {"multi_modal_projector.", kProjector},
                  {"model.", kLanguage}};
  std::vector<adapters::Module> modules;
  add_decoder_modules(c.decoder, kLanguage, modules);
  add_clip_vision_modules(c.vision, kTower, modules);
  modules.push_back(
      {std::string(kProjector) + "linear_1", c.visual_width(), c.decoder.hidden, -1, true});
  modules.push_back(
      {std::string(kProjector) + "linear_2", c.decoder.hidden, c.decoder.hidden, -1, true});
  modules.push_back(head_module(c.decoder, "lm_head"));
  spec.modules = adapters::ModuleTable(std::move(modules), spec.aliases, c.decoder.hidden);
  return spec;
}

class LlavaForConditionalGeneration final : public Model {
 public:
  LlavaForConditionalGeneration(const ConfigReader& config, Weights& weights, at::Device device)
      : LlavaForConditionalGeneration(llava_spec(config), read_config(config), weights, device) {}

  at::Tensor forward(const Batch& batch) const override { return language_model_.forward(batch); }
  at::Tensor logits(const at::Tensor& hidden, const HeadAdaptation& adaptation) const override {
    return language_model_.logits(hidden, adaptation);
  }
  std::vector<Linear*> decoder_linears() override { return language_model_.linears(); }

  std::unique_ptr<Encoding> begin_encoding(std::vector<VisualItem> items,
                                           PieceSize pieces) const override {
    const auto tower = vision_tower_.begin(std::move(items), config_.states);
    auto encoding = std::make_unique<Encoding>(pieces);
    vision_tower_.add_stages(tower, *encoding);
    add_projector(tower, *encoding);
    return encoding;
  }

 private:
  LlavaForConditionalGeneration(ModelSpec spec, const LlavaConfig& c, Weights& weights,
                                at::Device device)
      : Model(std::move(spec)),
        config_(c),
        vision_tower_(weights, this->spec().modules, kTower, c.vision,
                      *std::max_element(c.states.begin(), c.states.end()), device),
        linear_1_(table_linear(weights, this->spec().modules, std::string(kProjector) + "linear_1",
                               c.projector_bias)),
        linear_2_(table_linear(weights, this->spec().modules, std::string(kProjector) + "linear_2",
                               c.projector_bias)),
        language_model_(weights, this->spec().modules, kLanguage, "lm_head", c.decoder, device) {}

  struct Projection {
    std::vector<int64_t> rows;  // per item
    Adaptation adaptation;
    at::Tensor features;  // the tower's states side by side, [rows, visual_width]
    at::Tensor out;       // [rows, hidden]
  };

  void add_projector(const std::shared_ptr<ClipVisionTower::Run>& tower, Encoding& encoding) const {
    const auto items = static_cast<int64_t>(tower->items.size());
    const int64_t each = config_.vision.positions() - (config_.keeps_class ? 0 : 1);
    const auto run = std::make_shared<Projection>();
    run->rows.assign(tower->items.size(), each);
    run->adaptation = item_adaptation(tower->items, run->rows);
    run->out = at::empty({items * each, linear_2_.weight().out()}, tower->x.options());
    encoding.add(
        {1, 0, [this, tower, run, items](int64_t, int64_t) {
           const at::Tensor x = at::cat(tower->states, 1).view({items, -1, config_.visual_width()});
           run->features =
               (config_.keeps_class ? x : x.slice(1, 1)).reshape({-1, config_.visual_width()});
         }});
    encoding.add({items * each, products_of({&linear_1_, &linear_2_}),
                  [this, run](int64_t begin, int64_t end) {
                    const Adaptation adaptation = run->adaptation.part(begin, end);
                    const at::Tensor x = linear_1_(run->features.slice(0, begin, end), adaptation);
                    run->out.slice(0, begin, end)
                        .copy_(linear_2_(activate(x, config_.projector_activation), adaptation));
                  }});
    encoding.finish_with([run] { return split_items(run->out, run->rows); });
  }

  LlavaConfig config_;
  ClipVisionTower vision_tower_;
  Linear linear_1_, linear_2_;
  Decoder language_model_;
};

Result<std::shared_ptr<const media::Processor>> llava_processor(
    const ConfigReader& config, const media::ProcessorFiles& files) {
  const LlavaConfig c = read_config(config);
  return media::make_clip_processor(files.image, {static_cast<int>(c.vision.image),
                                                  static_cast<int>(c.vision.patch), c.keeps_class});
}

}  // namespace

Family llava_family() {
  return {
      .architecture = "LlavaForConditionalGeneration",
      .spec = llava_spec,
      .build = [](const ConfigReader& config, Weights& weights,
                  at::Device device) -> std::unique_ptr<Model> {
        return std::make_unique<LlavaForConditionalGeneration>(config, weights, device);
      },
      .positions = causal_lm_positions,
      .chat_format = [](const text::Tokenizer&,
                        const ConfigReader&) { return text::make_llava_chat(); },
      .image_placeholder = "<image>",
      .default_eos = kLlamaEos,
      .chat_adds_bos = true,
      .processor = llava_processor,
  };
}

}  // namespace valora::models
