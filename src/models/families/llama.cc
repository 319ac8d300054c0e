#include "models/families/families.h"

#include "models/families/causal_lm.h"
#include "text/chat/chat_formats.h"

namespace valora::models {
namespace {

constexpr char kLlama[] = "LlamaForCausalLM";

}  // namespace

DecoderConfig read_llama_config(const ConfigReader& text, const ConfigReader& top) {
  DecoderDefaults defaults{
      .vocab = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32};
  defaults.max_positions = 2048;
  defaults.qkv_bias = defaults.o_bias = text.flag("attention_bias", false);
  defaults.mlp_bias = text.flag("mlp_bias", false);
  return read_decoder_config(text, top, defaults);
}

Family llama_family() {
  return {
      .architecture = kLlama,
      .model_type = "llama",
      .spec =
          [](const ConfigReader& config) {
            return causal_lm_spec(read_llama_config(config, config), kLlama);
          },
      .build =
          [](const ConfigReader& config, Weights& weights, at::Device device) {
            return make_causal_lm(read_llama_config(config, config), kLlama, weights, device);
          },
      .positions = causal_lm_positions,
      .chat_format =
          [](const text::Tokenizer& tokenizer, const ConfigReader&) {
            return tokenizer.token_to_id("<|start_header_id|>") ? text::make_llama3_chat()
                                                                : text::make_llama2_chat();
          },
      .default_eos = kLlamaEos,
  };
}

}  // namespace valora::models
