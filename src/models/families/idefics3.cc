#include "models/families/families.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "models/decoder/decoder_config.h"
#include "models/decoder/layers.h"
#include "models/families/causal_lm.h"
#include "models/families/number_words.h"
#include "models/towers/siglip_vision.h"
#include "text/chat/chat_formats.h"

namespace valora::models {
namespace {

constexpr char kIdefics3[] = "Idefics3ForConditionalGeneration",
               kSmolVlm[] = "SmolVLMForConditionalGeneration";
constexpr char kTextModel[] = "model.text_model.";
constexpr char kVisionModel[] = "model.vision_model.";
constexpr char kConnector[] = "model.connector.modality_projection.proj";

struct Idefics3Config {
  DecoderConfig decoder;
  SiglipVisionConfig vision;
  int64_t merge = 2;  // scale_factor² patches become one token
  int64_t merged_width() const { return vision.width * merge * merge; }
};

Idefics3Config read_idefics3_config(const ConfigReader& config) {
  Idefics3Config c;
  c.decoder = read_text_decoder(config.child("text_config"), config, {"llama"});
  c.vision = read_siglip_vision_config(config.child("vision_config"));
  c.merge = config.at_most("scale_factor", kMaxVisionSide, c.merge);
  return c;
}

template <const char* kArchitecture>
ModelSpec idefics3_spec(const ConfigReader& config) {
  const Idefics3Config c = read_idefics3_config(config);
  ModelSpec spec = decoder_spec(c.decoder, kArchitecture);
  spec.image_token = static_cast<int32_t>(config.integer("image_token_id", 128257));
  // A video uses the image placeholder: the tokenizers have none for videos.
  if (spec.architecture == kSmolVlm) spec.video_token = spec.image_token;
  spec.visual_merge = static_cast<int>(c.merge);
  spec.aliases = {{"model.", kTextModel}};  // the language model alone
  std::vector<adapters::Module> modules;
  add_decoder_modules(c.decoder, kTextModel, modules);
  add_siglip_vision_modules(c.vision, kVisionModel, modules);
  modules.push_back({kConnector, c.merged_width(), c.decoder.hidden, -1, true});
  modules.push_back(head_module(c.decoder, "lm_head"));
  spec.modules = adapters::ModuleTable(std::move(modules), spec.aliases, c.decoder.hidden);
  return spec;
}

class Idefics3Vision final : public VisionEncoder {
 public:
  Idefics3Vision(const adapters::ModuleTable& modules, const Idefics3Config& c, Weights& weights,
                 at::Device device)
      : merge_(c.merge),
        depth_(c.vision.layers),
        vision_model_(weights, modules, kVisionModel, c.vision,
                      {.depth = depth_, .merge = c.merge, .squares = false, .last_norm = true},
                      device),
        connector_(table_linear(weights, modules, kConnector, false)) {}

  std::unique_ptr<Encoding> begin(std::vector<VisualItem> items, PieceSize pieces) const override {
    auto encoding = std::make_unique<Encoding>(pieces);
    add_connector(vision_model_.begin(std::move(items), {depth_}, *encoding), *encoding);
    return encoding;
  }

 private:
  struct Tokens {
    std::vector<int64_t> rows;  // per item
    Adaptation adaptation;
    at::Tensor out;  // [tokens, hidden]
  };

  // The patches of a merge block are adjacent rows, so joining them is a view.
  void add_connector(const std::shared_ptr<TowerStates>& tower, Encoding& encoding) const {
    const int64_t unit = merge_ * merge_;
    int64_t tokens = 0;
    const auto run = std::make_shared<Tokens>();
    for (const VisualItem& item : tower->items) {
      run->rows.push_back(item.input->patch_count() / unit);
      tokens += run->rows.back();
    }
    run->adaptation = item_adaptation(tower->items, run->rows);
    run->out = at::empty({tokens, connector_.weight().out()}, tower->options);
    encoding.add(
        {tokens, products_of({&connector_}), [this, tower, run, unit](int64_t begin, int64_t end) {
           const at::Tensor x = vision_model_.normalised(
               as_read(tower->states[0].slice(0, begin * unit, end * unit)));
           run->out.slice(0, begin, end)
               .copy_(connector_(x.reshape({end - begin, connector_.weight().in()}),
                                 run->adaptation.part(begin, end)));
         }});
    encoding.finish_with([run] { return split_items(run->out, run->rows); });
  }

  int64_t merge_, depth_;
  SiglipVisionTower vision_model_;
  Linear connector_;
};

template <bool videos>
Result<std::shared_ptr<const media::Processor>> idefics3_processor(
    const ConfigReader& config, const media::ProcessorFiles& files) {
  const Idefics3Config c = read_idefics3_config(config);
  return media::make_tile_processor(
      files, {static_cast<int>(c.vision.patch), static_cast<int>(c.merge)}, videos);
}

constexpr char kAround[] = "<fake_token_around_image>";

// The tiles, each after its row and column, with a line break after each row of tiles; then the
// whole picture.
std::string idefics3_image_text(const media::VisualInput& image) {
  std::string text;
  for (int row = 1; row <= image.tile_rows; ++row) {
    for (int column = 1; column <= image.tile_columns; ++column)
      text += fmt::format("{}<row_{}_col_{}><image>", kAround, row, column);
    text += "\n";
  }
  if (image.tile_rows > 0) text += "\n";
  return text + fmt::format("{0}<global-img><image>{0}", kAround);
}

// The frames, each after its timestamp. The wording is that of SmolVLM's processor.
std::string smolvlm_media_text(const media::VisualInput& input) {
  if (input.kind == media::MediaKind::kImage) return idefics3_image_text(input);
  const std::vector<double>& times = input.patch_times;
  const auto whole_seconds = [](double time) {
    return static_cast<int64_t>(std::clamp(time, 0.0, 1e15));
  };
  const int64_t seconds =
      whole_seconds(input.seconds > 0 || times.empty() ? input.seconds : times.back());
  const int64_t days = seconds / 86400;
  const std::string day = days == 0 ? "" : fmt::format("{} day{}, ", days, days == 1 ? "" : "s");
  std::string text = fmt::format(
      "You are provided the following series of {} frames from a {}{}:{:02}:{:02} [H:MM:SS] "
      "video.\n",
      number_words(input.grid_t), day, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
  for (const double time : times) {
    const int64_t whole = whole_seconds(time);
    text += fmt::format("\nFrame from {:02}:{:02}:{}<global-img><image>{}", whole / 60, whole % 60,
                        kAround, kAround);
  }
  return text + "\n\n";
}

template <const char* kArchitecture>
Family idefics3_family_named(std::string model_type) {
  return {
      .architecture = kArchitecture,
      .model_type = std::move(model_type),
      .spec = idefics3_spec<kArchitecture>,
      .build = [](const ConfigReader& config, Weights& weights,
                  at::Device device) -> std::unique_ptr<Model> {
        const Idefics3Config c = read_idefics3_config(config);
        ModelSpec spec = idefics3_spec<kArchitecture>(config);
        auto vision = std::make_unique<Idefics3Vision>(spec.modules, c, weights, device);
        return make_vision_language_model(std::move(spec), std::move(vision), c.decoder, kTextModel,
                                          "lm_head", weights, device);
      },
      .positions = causal_lm_positions,
      .chat_format =
          [](const text::Tokenizer& tokenizer, const ConfigReader&) {
            return text::make_idefics3_chat(tokenizer.token_to_id("<|im_start|>").has_value());
          },
      .image_placeholder = "<image>",
      .no_videos = std::string("videos are not supported for ") + kArchitecture +
                   "; send their frames as images",
      .default_eos = kLlamaEos,
      .chat_adds_bos = true,
      .processor = idefics3_processor<false>,
      .media_text = idefics3_image_text,
  };
}

}  // namespace

Family idefics3_family() { return idefics3_family_named<kIdefics3>("idefics3"); }

Family smolvlm_family() {
  Family family = idefics3_family_named<kSmolVlm>("smolvlm");
  family.video_placeholder = family.image_placeholder;
  family.media_text = smolvlm_media_text;
  family.excludes_mixed_media = true;
  family.processor = idefics3_processor<true>;
  return family;
}

}  // namespace valora::models
