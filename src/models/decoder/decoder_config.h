// A Llama-like decoder as data: the sizes shared by all layers, and the computation of each layer.
// Each family's file adds the values missing from config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/decoder/attention_windows.h"
#include "models/decoder/rotary.h"
#include "models/model.h"
#include "models/spec/config_reader.h"
#include "ops/linear/linear.h"

namespace valora::models {

// The names of the decoder's parts in a checkpoint, after its prefix; a layer's parts come after
// `layers` and its index. qkv: the single linear of the kinds other than Qkv::kApart.
struct DecoderNames {
  const char *embedding = "embed_tokens", *norm = "norm", *layers = "layers.";
  const char *input_norm = "input_layernorm", *inner_norm = "post_attention_layernorm";
  // Norms of the outputs of attention and MLP before they are added to the residual stream; null:
  // none.
  const char *attention_norm = nullptr, *mlp_norm = nullptr;
  const char *q = "self_attn.q_proj", *k = "self_attn.k_proj", *v = "self_attn.v_proj";
  const char *qkv = nullptr, *o = "self_attn.o_proj";
  const char *q_norm = "self_attn.q_norm", *k_norm = "self_attn.k_norm";
  const char *gate = "mlp.gate_proj", *up = "mlp.up_proj", *down = "mlp.down_proj";
};

// How queries, keys and values are computed. If one linear computes all three, an adapter has one
// update for them.
enum class Qkv : uint8_t {
  kApart,       // three linears
  kSideBySide,  // one linear: all queries, all keys, all values, in equal numbers
  kByGroup,     // one: for each KV head, its queries, then its key and value
};

// A mixture of experts (models/decoder/mixture.h): gated MLPs of which a router chooses some for
// each token.
struct MixtureConfig {
  int64_t experts = 0, chosen = 0;  // chosen: per token, at most `experts`
  int64_t width = 0;                // of each expert
  bool normed = false;              // the weights of a token's chosen experts add up to 1
  int64_t shared_width = 0;         // of the expert that all tokens have; 0: there is none
};

// One layer: pre-norm attention with rotary positions and grouped query heads, then a gated MLP. A
// family with another kind of attention, norm or MLP adds a field.
struct LayerConfig {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t intermediate = 0;
  // The number of last positions, its own included, that a query attends to; 0: no limit.
  int64_t window = 0;
  double norm_eps = 1e-6;  // for all norms of the layer
  bool qk_norm = false;    // each head's query and key are normalised before rotation
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  Qkv qkv = Qkv::kApart;
  double norm_offset = 0;  // added to the weights of all norms of the layer
  ops::Gate gate = ops::Gate::kSilu;
  double attention_scale = 0;  // factor of the scores; 0: 1/sqrt(head_dim)
  bool local_rotary = false;   // rotated by DecoderConfig::local_rotary
  // The query linear also yields a gate for each head, after its query; the gate's sigmoid
  // multiplies the head's attention output.
  bool output_gate = false;
  // A gated delta rule (models/decoder/delta_net.h) in place of attention; absent: attention. Its
  // `layers` counts those of the whole model.
  std::optional<StateSpec> delta;
  std::optional<MixtureConfig> mixture;  // in place of the MLP
};

struct DecoderConfig {
  DecoderNames names;
  int64_t vocab = 0, hidden = 0;
  double norm_eps = 1e-6, norm_offset = 0;  // for the final norm
  double embedding_scale = 1;               // factor of text tokens' embeddings
  // The output layer shares the embedding, unless the checkpoint stores its own.
  bool tied_embeddings = false;
  int64_t max_positions = 0;
  RotaryConfig rotary;  // for all layers except those with local_rotary
  std::optional<RotaryConfig> local_rotary;
  // At least one layer has attention. All have the same KV heads and head size.
  std::vector<LayerConfig> layers;
};

// A family's defaults for missing keys, from its configuration class in transformers. A size of 0
// means that the file must give it.
struct DecoderDefaults {
  int64_t vocab = 0, hidden = 0, intermediate = 0, layers = 0, heads = 0;
  int64_t kv_heads = 0;  // 0: as many as heads
  int64_t head_dim = 0;  // 0: hidden / heads
  int64_t max_positions = 32768;
  double norm_eps = 1e-6, rope_theta = 10000;
  // The key of the activation, and the only value the family supports.
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
  bool qk_norm = false, qkv_bias = false, o_bias = false, mlp_bias = false;
  WindowDefaults windows;
  bool local_rotary = false;  // layers with windows have their own rope
  // The rotated share of a head if the file gives none; 0: the whole head, and any other share is
  // refused.
  double rotary_share = 0;
};

// text: config.json or its text_config. top: config.json, which may hold tie_word_embeddings.
// Throws LoadError.
DecoderConfig read_decoder_config(const ConfigReader& text, const ConfigReader& top,
                                  const DecoderDefaults& defaults);
// A ModelSpec with the decoder's sizes but no modules.
ModelSpec decoder_spec(const DecoderConfig& config, const std::string& architecture);
// Appends the decoder's linears under `prefix` ("model."), then its embeddings.
void add_decoder_modules(const DecoderConfig& config, const std::string& prefix,
                         std::vector<adapters::Module>& modules);
// The module of the output layer.
adapters::Module head_module(const DecoderConfig& config, const std::string& name);

// The mixtures of experts in config.json: defaults of a family's configuration class for missing
// keys, and what its class decides itself.
struct MixtureDefaults {
  int64_t experts = 0, chosen = 0, width = 0;
  int64_t shared_width = 0;    // 0: the family has no shared expert
  bool always_normed = false;  // regardless of "norm_topk_prob"
  bool every_layer = false;    // regardless of "decoder_sparse_step" and "mlp_only_layers"
};

// Sets LayerConfig::mixture of the layers that have one. Throws LoadError.
void read_mixtures(const ConfigReader& text, const MixtureDefaults& defaults,
                   DecoderConfig& config);

// The decoder of a composite model, chosen by the "model_type" of its text_config.
// types: those the family supports; the first is the default if the configuration names none. For
// any other type, throws a LoadError that lists them.
DecoderConfig read_text_decoder(const ConfigReader& text, const ConfigReader& top,
                                const std::vector<const char*>& types);

}  // namespace valora::models
