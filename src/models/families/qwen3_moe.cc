#include "models/families/families.h"

#include "models/decoder/decoder_config.h"
#include "models/families/causal_lm.h"
#include "text/chat/chat_formats.h"

namespace valora::models {
namespace {

constexpr char kQwen3Moe[] = "Qwen3MoeForCausalLM";

DecoderConfig read_qwen3_moe_config(const ConfigReader& config) {
  DecoderDefaults defaults{.kv_heads = 4, .qk_norm = true, .windows = {Windows::kSwitchedAll}};
  defaults.qkv_bias = defaults.o_bias = config.flag("attention_bias", false);
  DecoderConfig c = read_decoder_config(config, config, defaults);
  read_mixtures(config, {.experts = 128, .chosen = 8, .width = 768}, c);
  return c;
}

}  // namespace

Family qwen3_moe_family() {
  return {
      .architecture = kQwen3Moe,
      .model_type = "qwen3_moe",
      .spec =
          [](const ConfigReader& config) {
            return causal_lm_spec(read_qwen3_moe_config(config), kQwen3Moe);
          },
      .build =
          [](const ConfigReader& config, Weights& weights, at::Device device) {
            return make_causal_lm(read_qwen3_moe_config(config), kQwen3Moe, weights, device);
          },
      .positions = causal_lm_positions,
      .chat_format = [](const text::Tokenizer&,
                        const ConfigReader&) { return text::make_qwen3_chat(); },
  };
}

}  // namespace valora::models
