// Gemma3ForConditionalGeneration: a SigLIP tower whose patches are average-pooled in squares,
// normalised and projected by one matrix. The tokens of a picture attend to each other
// bidirectionally.
#include <cmath>
#include <memory>

#include "models/families/causal_lm.h"
#include "models/families/families.h"
#include "models/towers/siglip_vision.h"
#include "text/chat/chat_formats.h"

namespace valora::models {
namespace {

constexpr char kGemma3[] = "Gemma3ForConditionalGeneration";
constexpr char kGemma3Language[] = "model.language_model.";
constexpr char kGemma3Tower[] = "model.vision_tower.vision_model.";
constexpr char kGemma3Projector[] = "model.multi_modal_projector.";

// The projection, stored as [in, out].
Linear gemma3_projection(Weights& weights, int64_t in, int64_t out) {
  const at::Tensor matrix =
      weights.get(std::string(kGemma3Projector) + "mm_input_projection_weight", {in, out})
          .t()
          .contiguous();
  return Linear(weights.plain() ? ops::Weight::plain(matrix)
                                : ops::Weight(matrix, weights.dtype(), weights.device()));
}

struct Gemma3Config {
  DecoderConfig decoder;
  SiglipVisionConfig vision;
  int64_t tokens = 256;  // per picture
  int64_t pool = 4;      // side, in patches, of the square pooled into one token
};

Gemma3Config read_gemma3_vl_config(const ConfigReader& config) {
  Gemma3Config c;
  const ConfigReader text = config.child("text_config");
  if (const std::string type = text.text("model_type", "gemma3_text"); type != "gemma3_text")
    text.refuse("a language model of type \"" + type + "\" is not supported, only gemma3_text");
  c.decoder = read_gemma3_config(text, config);
  const ConfigReader vision = config.child("vision_config");
  if (const std::string type = vision.text("model_type", "siglip_vision_model");
      type != "siglip_vision_model")
    vision.refuse("a vision tower of type \"" + type + "\" is not supported");
  c.vision = read_plain_siglip_config(vision);
  c.tokens = config.at_most("mm_tokens_per_image", 1 << 16, 256);
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(c.tokens)));
  if (side * side != c.tokens || c.vision.side() % side != 0)
    config.refuse("\"mm_tokens_per_image\" is not the square of a divisor of the " +
                  std::to_string(c.vision.side()) + " patches on a side of a picture");
  c.pool = c.vision.side() / side;
  return c;
}

ModelSpec gemma3_spec(const ConfigReader& config) {
  const Gemma3Config c = read_gemma3_vl_config(config);
  ModelSpec spec = decoder_spec(c.decoder, kGemma3);
  spec.image_token = static_cast<int32_t>(
      config.integer("image_token_index", config.integer("image_token_id", 262144)));
  spec.joint_tokens = c.tokens;
  // As in LLaVA: tensors, and modules before 4.52, lack "model."; since 5, no tower has
  // "vision_model.". The last entry is the language model alone.
  spec.aliases = {{"language_model.model.", kGemma3Language},
                  {"language_model.lm_head", "lm_head"},
                  {"vision_tower.vision_model.", kGemma3Tower},
                  {"model.vision_tower.", kGemma3Tower},
                  {"vision_tower.", kGemma3Tower},
                  {"multi_modal_projector.", kGemma3Projector},
                  {"model.", kGemma3Language}};
  std::vector<adapters::Module> modules;
  add_decoder_modules(c.decoder, kGemma3Language, modules);
  add_siglip_vision_modules(c.vision, kGemma3Tower, modules);
  modules.push_back(head_module(c.decoder, "lm_head"));
  spec.modules = adapters::ModuleTable(std::move(modules), spec.aliases, c.decoder.hidden);
  return spec;
}

class Gemma3Vision final : public VisionEncoder {
 public:
  Gemma3Vision(const adapters::ModuleTable& modules, const Gemma3Config& c, Weights& weights,
               at::Device device)
      : config_(c),
        vision_tower_(weights, modules, kGemma3Tower, c.vision,
                      {.depth = c.vision.layers, .last_norm = true}, device),
        norm_(weights, std::string(kGemma3Projector) + "mm_soft_emb_norm", c.vision.width,
              c.vision.norm_eps, 1),
        projection_(gemma3_projection(weights, c.vision.width, c.decoder.hidden)) {}

  std::unique_ptr<Encoding> begin(std::vector<VisualItem> items, PieceSize pieces) const override {
    auto encoding = std::make_unique<Encoding>(pieces);
    add_projector(vision_tower_.begin(std::move(items), {config_.vision.layers}, *encoding),
                  *encoding);
    return encoding;
  }

 private:
  struct Projection {
    at::Tensor pooled;  // [tokens, width]
    at::Tensor out;     // [tokens, hidden]
  };

  // The mean of each square of pool² patches. x: [patches, width], picture by picture in reading
  // order.
  at::Tensor pooled(const at::Tensor& x) const {
    const int64_t side = config_.vision.side(), pool = config_.pool;
    return x.view({-1, side / pool, pool, side / pool, pool, config_.vision.width})
        .mean(std::vector<int64_t>{2, 4})
        .view({-1, config_.vision.width});
  }

  void add_projector(const std::shared_ptr<TowerStates>& tower, Encoding& encoding) const {
    const auto pictures = static_cast<int64_t>(tower->items.size());
    const auto run = std::make_shared<Projection>();
    run->out = at::empty({pictures * config_.tokens, projection_.weight().out()}, tower->options);
    encoding.add({1, 0, [this, tower, run](int64_t, int64_t) {
                    run->pooled = pooled(vision_tower_.normalised(as_read(tower->states[0])));
                  }});
    encoding.add({pictures * config_.tokens, products_of({&projection_}),
                  [this, run](int64_t begin, int64_t end) {
                    run->out.slice(0, begin, end)
                        .copy_(projection_(norm_(run->pooled.slice(0, begin, end))));
                  }});
    encoding.finish_with([run, pictures, tokens = config_.tokens] {
      return split_items(run->out, std::vector<int64_t>(static_cast<size_t>(pictures), tokens));
    });
  }

  Gemma3Config config_;
  SiglipVisionTower vision_tower_;
  RmsNorm norm_;
  Linear projection_;
};

Result<std::shared_ptr<const media::Processor>> gemma3_processor(
    const ConfigReader& config, const media::ProcessorFiles& files) {
  const Gemma3Config c = read_gemma3_vl_config(config);
  return media::make_gemma3_processor(files, {.image_size = static_cast<int>(c.vision.image),
                                              .patch_size = static_cast<int>(c.vision.patch),
                                              .tokens = static_cast<int>(c.tokens)});
}

}  // namespace

Family gemma3_family() {
  return {
      .architecture = kGemma3,
      .model_type = "gemma3",
      .spec = gemma3_spec,
      .build = [](const ConfigReader& config, Weights& weights,
                  at::Device device) -> std::unique_ptr<Model> {
        const Gemma3Config c = read_gemma3_vl_config(config);
        ModelSpec spec = gemma3_spec(config);
        auto vision = std::make_unique<Gemma3Vision>(spec.modules, c, weights, device);
        return make_vision_language_model(std::move(spec), std::move(vision), c.decoder,
                                          kGemma3Language, "lm_head", weights, device);
      },
      .positions = causal_lm_positions,
      .chat_format = [](const text::Tokenizer&,
                        const ConfigReader&) { return text::make_gemma_chat(); },
      .image_placeholder = "<start_of_image>",
      .image_text = "\n\n<start_of_image><image_soft_token><end_of_image>\n\n",
      .default_eos = kGemmaEos,
      .chat_adds_bos = true,
      .processor = gemma3_processor,
  };
}

}  // namespace valora::models
