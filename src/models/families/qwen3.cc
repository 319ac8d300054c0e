#include "models/families/families.h"

#include "models/families/causal_lm.h"
#include "text/chat/chat_formats.h"

namespace valora::models {
namespace {

constexpr char kQwen3[] = "Qwen3ForCausalLM";

}  // namespace

DecoderConfig read_qwen3_config(const ConfigReader& text, const ConfigReader& top) {
  DecoderDefaults defaults{.kv_heads = 32, .head_dim = 128, .qk_norm = true};
  defaults.qkv_bias = defaults.o_bias = text.flag("attention_bias", false);
  defaults.windows = {Windows::kSwitched};
  return read_decoder_config(text, top, defaults);
}

Family qwen3_family() {
  return {
      .architecture = kQwen3,
      .model_type = "qwen3",
      .spec =
          [](const ConfigReader& config) {
            return causal_lm_spec(read_qwen3_config(config, config), kQwen3);
          },
      .build =
          [](const ConfigReader& config, Weights& weights, at::Device device) {
            return make_causal_lm(read_qwen3_config(config, config), kQwen3, weights, device);
          },
      .positions = causal_lm_positions,
      .chat_format = [](const text::Tokenizer&,
                        const ConfigReader&) { return text::make_qwen3_chat(); },
  };
}

}  // namespace valora::models
