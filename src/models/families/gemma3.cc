#include "models/families/families.h"

#include <cmath>

#include "models/families/causal_lm.h"
#include "text/chat/chat_formats.h"

namespace valora::models {
namespace {

constexpr char kGemma3Text[] = "Gemma3ForCausalLM";

// The rope of layers with windows: rope_local_base_freq (transformers 4), or rope_parameters of
// their own (5), always of the default type.
RotaryConfig read_gemma3_local_rotary(const ConfigReader& text, int64_t max_positions) {
  RotaryConfig local;
  local.theta = text.number("rope_local_base_freq", local.theta);
  local.max_positions = max_positions;
  const char* const key = "sliding_attention";
  if (!text.has("rope_parameters") || !text.child("rope_parameters").has(key)) return local;
  const ConfigReader own = text.child("rope_parameters").child(key);
  if (const std::string type = own.text("rope_type", "default"); type != "default")
    text.refuse("rope type \"" + type + "\" of layers with windows is not supported");
  local.theta = own.number("rope_theta", local.theta);
  if (!(local.theta > 1)) text.refuse("\"rope_theta\" must be above 1");
  return local;
}

}  // namespace

DecoderConfig read_gemma3_config(const ConfigReader& text, const ConfigReader& top) {
  for (const char* key : {"final_logit_softcapping", "attn_logit_softcapping"})
    if (text.has(key)) text.refuse("\"" + std::string(key) + "\" is not supported");
  if (text.flag("use_bidirectional_attention", false))
    text.refuse("\"use_bidirectional_attention\" is not supported");
  DecoderDefaults defaults{.vocab = 262208,
                           .hidden = 2304,
                           .intermediate = 9216,
                           .layers = 26,
                           .heads = 8,
                           .kv_heads = 4,
                           .head_dim = 256,
                           .max_positions = 131072,
                           .rope_theta = 1e6,
                           .activation_key = "hidden_activation",
                           .activation = "gelu_pytorch_tanh",
                           .qk_norm = true};
  defaults.qkv_bias = defaults.o_bias = text.flag("attention_bias", false);
  defaults.windows = {Windows::kPattern};
  defaults.local_rotary = true;
  DecoderConfig c = read_decoder_config(text, top, defaults);
  c.local_rotary = read_gemma3_local_rotary(text, c.max_positions);
  c.tied_embeddings = text.flag("tie_word_embeddings", top.flag("tie_word_embeddings", true));
  c.embedding_scale = std::sqrt(static_cast<double>(c.hidden));
  c.norm_offset = 1;
  const double scalar = text.number("query_pre_attn_scalar", 256);
  if (!(scalar > 0)) text.refuse("\"query_pre_attn_scalar\" must be above 0");
  c.names.inner_norm = "pre_feedforward_layernorm";
  c.names.attention_norm = "post_attention_layernorm";
  c.names.mlp_norm = "post_feedforward_layernorm";
  for (LayerConfig& layer : c.layers) {
    layer.norm_offset = 1;
    layer.gate = ops::Gate::kGeluTanh;
    if (scalar != static_cast<double>(layer.head_dim))
      layer.attention_scale = 1 / std::sqrt(scalar);
  }
  return c;
}

Family gemma3_text_family() {
  return {
      .architecture = kGemma3Text,
      .model_type = "gemma3_text",
      .spec =
          [](const ConfigReader& config) {
            return causal_lm_spec(read_gemma3_config(config, config), kGemma3Text);
          },
      .build =
          [](const ConfigReader& config, Weights& weights, at::Device device) {
            return make_causal_lm(read_gemma3_config(config, config), kGemma3Text, weights, device);
          },
      .positions = causal_lm_positions,
      .chat_format = [](const text::Tokenizer&,
                        const ConfigReader&) { return text::make_gemma_chat(); },
      .default_eos = kGemmaEos,
      .chat_adds_bos = true,
  };
}

}  // namespace valora::models
