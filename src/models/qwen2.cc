#include "models/qwen2.h"

#include "models/causal_lm.h"

namespace valora::models {
namespace {

constexpr char kQwen2[] = "Qwen2ForCausalLM";

DecoderConfig decoder_config(const ConfigReader& config) {
  return read_decoder_config(config, config, {.qkv_bias = true, .windows = {Windows::kSwitched}});
}

}  // namespace

Family qwen2_family() {
  return {
      .architecture = kQwen2,
      .spec =
          [](const ConfigReader& config) { return causal_lm_spec(decoder_config(config), kQwen2); },
      .build =
          [](const ConfigReader& config, Weights& weights, at::Device device) {
            return make_causal_lm(decoder_config(config), kQwen2, weights, device);
          },
      .positions = causal_lm_positions,
      .chat_format = [](const text::Tokenizer&) { return text::make_chatml(); },
  };
}

}  // namespace valora::models
