// What a decoder of the Llama kind is made of, as data: the sizes that all layers share and, for
// each layer, what it computes. The families' files fill in what config.json does not say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/attention_windows.h"
#include "models/model.h"
#include "models/rotary.h"
#include "models/spec/config_reader.h"
#include "ops/linear.h"

namespace valora::models {

// What a checkpoint calls the decoder's parts, behind its prefix; those of a layer behind `layers`
// and its index. qkv: the one linear of Qkv other than kApart.
struct DecoderNames {
  const char *embedding = "embed_tokens", *norm = "norm", *layers = "layers.";
  const char *input_norm = "input_layernorm", *inner_norm = "post_attention_layernorm";
  // Of what attention and MLP add to the residual stream; null: it is added as it is.
  const char *attention_norm = nullptr, *mlp_norm = nullptr;
  const char *q = "self_attn.q_proj", *k = "self_attn.k_proj", *v = "self_attn.v_proj";
  const char *qkv = nullptr, *o = "self_attn.o_proj";
  const char *q_norm = "self_attn.q_norm", *k_norm = "self_attn.k_norm";
  const char *gate = "mlp.gate_proj", *up = "mlp.up_proj", *down = "mlp.down_proj";
};

// How queries, keys and values are made. In one linear, an adapter is one update of all three.
enum class Qkv : uint8_t {
  kApart,       // three linears
  kSideBySide,  // one: all queries, then all keys, then all values
  kByGroup,     // one: for each head of keys and values its queries, its key and its value
};

// One layer: pre-norm attention with rotary positions and grouped query heads, then a gated MLP. A
// family that needs another kind of one of its parts adds a field.
struct LayerConfig {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t intermediate = 0;
  // How many positions a query attends to, the last ones up to its own; 0: all up to its own.
  int64_t window = 0;
  double norm_eps = 1e-6;  // of all norms of the layer
  bool qk_norm = false;    // each head's query and key are normalised before they are rotated
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  Qkv qkv = Qkv::kApart;
  double norm_offset = 0;  // added to the weights of all norms of the layer
  ops::Gate gate = ops::Gate::kSilu;
  double attention_scale = 0;  // of the scores; 0: 1/sqrt(head_dim)
  bool local_rotary = false;   // rotated by DecoderConfig::local_rotary
  // The linear of queries has a gate behind each head's query, whose sigmoid multiplies what the
  // head attends to.
  bool output_gate = false;
  // In place of attention: a gated delta rule (models/delta_net.h). Its `layers` are those of the
  // model. Absent: attention.
  std::optional<StateSpec> delta;
};

struct DecoderConfig {
  DecoderNames names;
  int64_t vocab = 0, hidden = 0;
  double norm_eps = 1e-6, norm_offset = 0;  // of the norm after the last layer
  double embedding_scale = 1;               // of the embeddings of text tokens
  // The output layer is the embedding, unless the checkpoint has another one.
  bool tied_embeddings = false;
  int64_t max_positions = 0;
  RotaryConfig rotary;  // of all layers, but those with local_rotary
  std::optional<RotaryConfig> local_rotary;
  // At least one with attention. The keys and values of all layers have the same heads and sizes.
  std::vector<LayerConfig> layers;
};

// What a family's configuration class in transformers has for missing keys. A size that is 0 must
// be in the file.
struct DecoderDefaults {
  int64_t vocab = 0, hidden = 0, intermediate = 0, layers = 0, heads = 0;
  int64_t kv_heads = 0;  // 0: as many as heads
  int64_t head_dim = 0;  // 0: hidden / heads
  int64_t max_positions = 32768;
  double norm_eps = 1e-6, rope_theta = 10000;
  // The key of the activation, and its value in all that the family serves.
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
  bool qk_norm = false, qkv_bias = false, o_bias = false, mlp_bias = false;
  WindowDefaults windows;
  bool local_rotary = false;  // layers with windows have a rope of their own
  // The share of a head that is rotated if the file names none; 0: all of it, and another share is
  // refused.
  double rotary_share = 0;
};

// text: config.json or its text_config. top: config.json, which may hold tie_word_embeddings.
// Throws LoadError.
DecoderConfig read_decoder_config(const ConfigReader& text, const ConfigReader& top,
                                  const DecoderDefaults& defaults);
// A ModelSpec with the sizes of the decoder, without modules.
ModelSpec decoder_spec(const DecoderConfig& config, const std::string& architecture);
// Appends the decoder's linears under `prefix` ("model."), then its embeddings.
void add_decoder_modules(const DecoderConfig& config, const std::string& prefix,
                         std::vector<adapters::Module>& modules);
// The output layer.
adapters::Module head_module(const DecoderConfig& config, const std::string& name);

}  // namespace valora::models
