#include "models/families/families.h"

#include <algorithm>

#include "models/families/causal_lm.h"
#include "models/families/llava_model.h"

namespace valora::models {
namespace {

constexpr char kMistral3[] = "Mistral3ForConditionalGeneration",
               kPixtral[] = "LlavaForConditionalGeneration";

LlavaConfig read_pixtral(const ConfigReader& config) {
  return read_llava_config(config, {.decoders = {"mistral"}, .towers = {"pixtral"}});
}

LlavaConfig read_mistral3(const ConfigReader& config) {
  LlavaConfig c = read_llava_config(config, {.decoders = {"mistral"},
                                             .towers = {"pixtral"},
                                             .feature_layer = -1,
                                             .strategy = nullptr,
                                             .projector_bias = false});
  if (c.states.size() != 1)
    config.refuse(
        "\"vision_feature_layer\" must name one layer: the projector's norm has its width");
  c.merges = true;
  c.merge = config.at_most("spatial_merge_size", 64, 2);
  // The default of the class in transformers 5. An output layer in the checkpoint takes precedence.
  if (!config.has("tie_word_embeddings") && !config.child("text_config").has("tie_word_embeddings"))
    c.decoder.tied_embeddings = true;
  return c;
}

template <LlavaConfig (*kRead)(const ConfigReader&), const char* kArchitecture>
ModelSpec pixtral_spec(const ConfigReader& config) {
  ModelSpec spec = llava_model_spec(kRead(config), kArchitecture);
  spec.image_token = llava_token(config, "image", 10);
  return spec;
}

// Rows of placeholder tokens, each followed by a break token.
std::string pixtral_image_text(const media::VisualInput& image) {
  std::string text;
  for (int row = 1; row <= std::max(image.token_rows, 1); ++row)
    text += row < image.token_rows ? "[IMG][IMG_BREAK]" : "[IMG][IMG_END]";
  return text;
}

template <LlavaConfig (*kRead)(const ConfigReader&)>
Result<std::shared_ptr<const media::Processor>> pixtral_processor(
    const ConfigReader& config, const media::ProcessorFiles& files) {
  const LlavaConfig c = kRead(config);
  return media::make_pixtral_processor(files, {.patch_size = static_cast<int>(c.tower().patch),
                                               .merge_size = static_cast<int>(c.merge),
                                               .most_patches = static_cast<int>(c.tower().side())});
}

template <LlavaConfig (*kRead)(const ConfigReader&), const char* kArchitecture>
Family pixtral_family_of(std::string model_type) {
  return {
      .architecture = kArchitecture,
      .model_type = std::move(model_type),
      .spec = pixtral_spec<kRead, kArchitecture>,
      .build =
          [](const ConfigReader& config, Weights& weights, at::Device device) {
            return make_llava_model(pixtral_spec<kRead, kArchitecture>(config), kRead(config),
                                    weights, device);
          },
      .positions = causal_lm_positions,
      .chat_format = [](const text::Tokenizer& tokenizer,
                        const ConfigReader&) { return mistral_chat(tokenizer, "[IMG]"); },
      .image_placeholder = "[IMG]",
      .default_eos = kLlamaEos,  // also Mistral's
      .chat_adds_bos = true,
      .processor = pixtral_processor<kRead>,
      .media_text = pixtral_image_text,
  };
}

}  // namespace

Family mistral3_family() { return pixtral_family_of<read_mistral3, kMistral3>("mistral3"); }

Family pixtral_family() {
  Family family = pixtral_family_of<read_pixtral, kPixtral>("llava");
  family.takes = [](const ConfigReader& config) {
    const auto vision = config.json().find("vision_config");
    if (vision == config.json().end() || !vision->is_object()) return false;
    const auto type = field_or<std::string>(*vision, "model_type", "");
    return type.ok() && *type == "pixtral";
  };
  return family;
}

}  // namespace valora::models
