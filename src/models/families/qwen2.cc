#include "models/families/families.h"

#include "models/families/causal_lm.h"

namespace valora::models {
namespace {

constexpr char kQwen2[] = "Qwen2ForCausalLM";

}  // namespace

DecoderConfig read_qwen2_config(const ConfigReader& text, const ConfigReader& top) {
  return read_decoder_config(text, top, {.qkv_bias = true, .windows = {Windows::kSwitched}});
}

Family qwen2_family() {
  return {
      .architecture = kQwen2,
      .model_type = "qwen2",
      .spec =
          [](const ConfigReader& config) {
            return causal_lm_spec(read_qwen2_config(config, config), kQwen2);
          },
      .build =
          [](const ConfigReader& config, Weights& weights, at::Device device) {
            return make_causal_lm(read_qwen2_config(config, config), kQwen2, weights, device);
          },
      .positions = causal_lm_positions,
      .chat_format = [](const text::Tokenizer&,
                        const ConfigReader&) { return text::make_chatml(); },
  };
}

}  // namespace valora::models
