#include "models/families/families.h"

#include "models/families/causal_lm.h"
#include "text/chat/chat_formats.h"

namespace valora::models {
namespace {

constexpr char kMistral[] = "MistralForCausalLM";
constexpr int32_t kEos = 2;  // MistralConfig's default

}  // namespace

std::unique_ptr<text::ChatFormat> mistral_chat(const text::Tokenizer& tokenizer,
                                               const std::string& image) {
  const bool bytes = tokenizer.token_to_id("<0x0A>").has_value();  // SentencePiece, not Tekken
  const auto kind = !tokenizer.token_to_id("[INST]")           ? text::MistralChat::kText
                    : bytes                                    ? text::MistralChat::kTokens
                    : tokenizer.token_to_id("[SYSTEM_PROMPT]") ? text::MistralChat::kTekkenSystem
                                                               : text::MistralChat::kTekken;
  return text::make_mistral_chat(kind, image);
}

DecoderConfig read_mistral_config(const ConfigReader& text, const ConfigReader& top) {
  return read_decoder_config(text, top,
                             {.vocab = 32000,
                              .hidden = 4096,
                              .intermediate = 14336,
                              .layers = 32,
                              .heads = 32,
                              .kv_heads = 8,
                              .max_positions = 131072,
                              .windows = {Windows::kAll}});
}

Family mistral_family() {
  return {
      .architecture = kMistral,
      .model_type = "mistral",
      .spec =
          [](const ConfigReader& config) {
            return causal_lm_spec(read_mistral_config(config, config), kMistral);
          },
      .build =
          [](const ConfigReader& config, Weights& weights, at::Device device) {
            return make_causal_lm(read_mistral_config(config, config), kMistral, weights, device);
          },
      .positions = causal_lm_positions,
      .chat_format = [](const text::Tokenizer& tokenizer,
                        const ConfigReader&) { return mistral_chat(tokenizer, {}); },
      .default_eos = kEos,
  };
}

}  // namespace valora::models
