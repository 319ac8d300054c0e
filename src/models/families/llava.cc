#include "models/families/families.h"

#include "models/families/causal_lm.h"
#include "models/families/llava_model.h"
#include "text/chat/chat_formats.h"

namespace valora::models {
namespace {

constexpr char kLlava[] = "LlavaForConditionalGeneration";

LlavaConfig read_llava(const ConfigReader& config) {
  return read_llava_config(config, {.decoders = {"llama"}, .towers = {"clip_vision_model"}});
}

ModelSpec llava_spec(const ConfigReader& config) {
  ModelSpec spec = llava_model_spec(read_llava(config), kLlava);
  spec.image_token = llava_token(config, "image", 32000);
  return spec;
}

Result<std::shared_ptr<const media::Processor>> llava_processor(
    const ConfigReader& config, const media::ProcessorFiles& files) {
  const LlavaConfig c = read_llava(config);
  return media::make_clip_processor(
      files.image,
      {static_cast<int>(c.tower().image), static_cast<int>(c.tower().patch), c.keeps_class});
}

}  // namespace

Family llava_family() {
  return {
      .architecture = kLlava,
      .model_type = "llava",
      .spec = llava_spec,
      .build =
          [](const ConfigReader& config, Weights& weights, at::Device device) {
            return make_llava_model(llava_spec(config), read_llava(config), weights, device);
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
