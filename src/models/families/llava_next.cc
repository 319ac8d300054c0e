#include "models/families/families.h"

#include "models/families/causal_lm.h"
#include "models/families/llava_model.h"
#include "text/chat/chat_formats.h"

namespace valora::models {
namespace {

constexpr char kLlavaNext[] = "LlavaNextForConditionalGeneration";

LlavaConfig read_llava_next(const ConfigReader& config) {
  LlavaConfig c =
      read_llava_config(config, {.decoders = {"llama", "mistral", "qwen2"},
                                 .towers = {"clip_vision_model", "siglip_vision_model"}});
  if (c.has_class() && c.keeps_class)
    config.refuse(
        "vision_feature_select_strategy \"full\" is not supported with a tower that has a class "
        "token: with it, tiles are not square");
  c.newline = true;
  c.default_pinpoints = {{672, 336}, {336, 672}, {672, 672}, {336, 1008}, {1008, 336}};
  read_pinpoints(config, c);
  return c;
}

std::string decoder_type(const ConfigReader& config) {
  return config.child("text_config").text("model_type", "llama");
}

ModelSpec llava_next_spec(const ConfigReader& config) {
  ModelSpec spec = llava_model_spec(read_llava_next(config), kLlavaNext);
  spec.image_token = llava_token(config, "image", 32000);
  if (decoder_type(config) != "qwen2") spec.default_eos = kLlamaEos;  // also Mistral's
  return spec;
}

// The formats of the published folders with these decoders: Mistral's, Vicuna's and ChatML.
std::unique_ptr<text::ChatFormat> llava_next_chat(const text::Tokenizer&,
                                                  const ConfigReader& config) {
  const std::string type = decoder_type(config);
  if (type == "mistral")
    return text::make_mistral_chat(text::MistralChat::kText, /*image=*/"<image>\n");
  if (type == "qwen2") return text::make_chatml("", {.image = "<image>\n", .video = {}});
  return text::make_llava_chat();
}

}  // namespace

Family llava_next_family() {
  return {
      .architecture = kLlavaNext,
      .model_type = "llava_next",
      .spec = llava_next_spec,
      .build =
          [](const ConfigReader& config, Weights& weights, at::Device device) {
            return make_llava_model(llava_next_spec(config), read_llava_next(config), weights,
                                    device);
          },
      .positions = causal_lm_positions,
      .chat_format = llava_next_chat,
      .image_placeholder = "<image>",
      .chat_adds_bos = true,
      .processor =
          [](const ConfigReader& config, const media::ProcessorFiles& files) {
            return llava_anyres_processor(read_llava_next(config), files);
          },
  };
}

}  // namespace valora::models
