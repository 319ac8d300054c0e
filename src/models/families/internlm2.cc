#include "models/families/families.h"

namespace valora::models {
namespace {

constexpr DecoderNames kInternLm2Names{.embedding = "tok_embeddings",
                                       .input_norm = "attention_norm",
                                       .inner_norm = "ffn_norm",
                                       .qkv = "attention.wqkv",
                                       .o = "attention.wo",
                                       .gate = "feed_forward.w1",
                                       .up = "feed_forward.w3",
                                       .down = "feed_forward.w2"};

}  // namespace

DecoderConfig read_internlm2_config(const ConfigReader& text, const ConfigReader& top) {
  DecoderDefaults defaults{
      .vocab = 103168, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32};
  defaults.max_positions = 2048;
  defaults.qkv_bias = defaults.o_bias = text.flag("bias", true);
  DecoderConfig c = read_decoder_config(text, top, defaults);
  c.names = kInternLm2Names;
  for (LayerConfig& layer : c.layers) layer.qkv = Qkv::kByGroup;
  return c;
}

}  // namespace valora::models
