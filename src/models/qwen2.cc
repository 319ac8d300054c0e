#include "models/qwen2.h"

#include "models/causal_lm.h"

namespace valora::models {
namespace {

constexpr char kArchitecture[] = "Qwen2ForCausalLM";

DecoderConfig decoder_config(const ConfigReader& config) {
  return read_decoder_config(config, config, {.qkv_bias = true});
}

}  // namespace

Family qwen2_family() {
  return {
      .architecture = kArchitecture,
      .spec =
          [](const ConfigReader& config) {
            return causal_lm_spec(decoder_config(config), kArchitecture);
          },
      .build =
          [](const ConfigReader& config, Weights& weights, at::Device device) {
            return make_causal_lm(decoder_config(config), kArchitecture, weights, device);
          },
      .positions = causal_lm_positions,
      .chat_format = [](const text::Tokenizer&) { return text::make_chatml(); },
  };
}

}  // namespace valora::models
