#include "models/decoder/decoder_config.h"

#include <algorithm>

#include "models/decoder/delta_net.h"
#include "models/decoder/mixture.h"
#include "models/quantised/config.h"

namespace valora::models {
namespace {

// Bounds the rotary frequencies, which are allocated before any tensor is checked.
constexpr int64_t kMaxHeadDim = 1 << 14;

LayerConfig read_layer(const ConfigReader& text, int64_t hidden, const DecoderDefaults& d) {
  LayerConfig layer;
  layer.intermediate = d.intermediate > 0 ? text.integer("intermediate_size", d.intermediate)
                                          : text.integer("intermediate_size");
  layer.heads = d.heads > 0 ? text.integer("num_attention_heads", d.heads)
                            : text.integer("num_attention_heads");
  // An explicit null means one per query head, whatever the default.
  const bool missing = !text.json().contains("num_key_value_heads");
  layer.kv_heads =
      text.integer("num_key_value_heads", missing && d.kv_heads > 0 ? d.kv_heads : layer.heads);
  if (layer.heads % layer.kv_heads != 0)
    text.refuse("\"num_attention_heads\" is not a multiple of \"num_key_value_heads\"");
  if (!text.has("head_dim") && d.head_dim == 0 && hidden % layer.heads != 0)
    text.refuse("\"hidden_size\" is not a multiple of \"num_attention_heads\"");
  layer.head_dim =
      text.at_most("head_dim", kMaxHeadDim, d.head_dim > 0 ? d.head_dim : hidden / layer.heads);
  if (layer.head_dim % 2 != 0)
    text.refuse("the head size is odd: " + std::to_string(layer.head_dim));
  layer.norm_eps = text.number("rms_norm_eps", d.norm_eps);
  layer.qk_norm = d.qk_norm;
  layer.qkv_bias = d.qkv_bias;
  layer.o_bias = d.o_bias;
  layer.mlp_bias = d.mlp_bias;
  return layer;
}

void check_activation(const ConfigReader& text, const DecoderDefaults& d) {
  const std::string name = text.text(d.activation_key, d.activation);
  if (name != d.activation && !(name == "swish" && d.activation == std::string_view("silu")))
    text.refuse(std::string(d.activation_key) + " \"" + name + "\" is not supported, only " +
                d.activation);
}

}  // namespace

DecoderConfig read_decoder_config(const ConfigReader& text, const ConfigReader& top,
                                  const DecoderDefaults& d) {
  const auto size = [&](const char* key, int64_t fallback) {
    return fallback > 0 ? text.integer(key, fallback) : text.integer(key);
  };
  for (const ConfigReader* config : {&text, &top}) config->refuse_changed_layers();
  DecoderConfig c;
  c.vocab = size("vocab_size", d.vocab);
  c.hidden = size("hidden_size", d.hidden);
  const int64_t layers = size("num_hidden_layers", d.layers);
  if (layers > kMaxLayers)
    text.refuse("\"num_hidden_layers\" is out of range: " + std::to_string(layers));
  const LayerConfig layer = read_layer(text, c.hidden, d);
  c.norm_eps = layer.norm_eps;
  c.tied_embeddings =
      text.flag("tie_word_embeddings", false) || top.flag("tie_word_embeddings", false);
  c.max_positions = text.integer("max_position_embeddings", d.max_positions);
  c.rotary = read_rotary(text, layer.head_dim, d.rope_theta, c.max_positions, d.rotary_share);
  c.max_positions = c.rotary.max_positions;
  check_activation(text, d);
  c.layers.assign(static_cast<size_t>(layers), layer);
  const std::vector<LayerWindow> windows = read_windows(text, d.windows, layers, c.max_positions);
  for (size_t i = 0; i < c.layers.size(); ++i) {
    c.layers[i].window = windows[i].positions;
    c.layers[i].local_rotary = d.local_rotary && windows[i].sliding;
  }
  (void)read_quantised_config(top);  // refuses unsupported formats
  return c;
}

ModelSpec decoder_spec(const DecoderConfig& c, const std::string& architecture) {
  const LayerConfig& first =
      *std::ranges::find_if(c.layers, [](const LayerConfig& layer) { return !layer.delta; });
  ModelSpec spec;
  spec.architecture = architecture;
  spec.vocab = c.vocab;
  spec.hidden = c.hidden;
  spec.layers = static_cast<int64_t>(c.layers.size());
  spec.heads = first.heads;
  spec.kv_heads = first.kv_heads;
  spec.head_dim = first.head_dim;
  spec.max_positions = c.max_positions;
  spec.rope_change = c.rotary.change;
  spec.whole_kv_heads = first.qkv != Qkv::kApart;
  spec.axes = c.rotary.sections.empty() ? 1 : 3;
  for (const LayerConfig& layer : c.layers) {
    if (layer.mixture) spec.experts = {layer.mixture->experts, layer.mixture->chosen};
    if (layer.delta) spec.state = *layer.delta;
  }
  return spec;
}

void add_decoder_modules(const DecoderConfig& c, const std::string& prefix,
                         std::vector<adapters::Module>& modules) {
  for (size_t i = 0; i < c.layers.size(); ++i) {
    const LayerConfig& l = c.layers[i];
    const int64_t q = l.heads * l.head_dim, kv = l.kv_heads * l.head_dim,
                  index = static_cast<int64_t>(i);
    const std::string layer = prefix + c.names.layers + std::to_string(i) + ".";
    const auto add = [&](const char* name, int64_t in, int64_t out, adapters::Split split,
                         int64_t units, std::array<int64_t, 3> sections = {1}) {
      modules.push_back({layer + name,
                         in,
                         out,
                         index,
                         false,
                         adapters::ModuleKind::kLinear,
                         {split, units, sections}});
    };
    using enum adapters::Split;
    if (l.delta) {
      add_delta_modules(*l.delta, c.hidden, layer, index, modules);
    } else if (l.qkv == Qkv::kApart) {
      add(c.names.q, c.hidden, l.output_gate ? 2 * q : q, kOutputs, l.heads);
      add(c.names.k, c.hidden, kv, kOutputs, l.kv_heads);
      add(c.names.v, c.hidden, kv, kOutputs, l.kv_heads);
    } else {
      const bool apart = l.qkv == Qkv::kSideBySide;  // all queries, all keys, all values
      add(c.names.qkv, c.hidden, q + 2 * kv, kOutputs, l.kv_heads,
          apart ? std::array{q, kv, kv} : std::array<int64_t, 3>{1});
    }
    if (!l.delta) add(c.names.o, q, c.hidden, kInputs, l.heads);
    if (l.mixture) {
      add_mixture_modules(*l.mixture, c.hidden, layer, index, modules);
      continue;
    }
    add(c.names.gate, c.hidden, l.intermediate, kOutputs, l.intermediate);
    add(c.names.up, c.hidden, l.intermediate, kOutputs, l.intermediate);
    add(c.names.down, l.intermediate, c.hidden, kInputs, l.intermediate);
  }
  modules.push_back(
      {prefix + c.names.embedding, c.vocab, c.hidden, -1, false, adapters::ModuleKind::kEmbedding});
}

adapters::Module head_module(const DecoderConfig& c, const std::string& name) {
  return {name,
          c.hidden,
          c.vocab,
          -1,
          false,
          adapters::ModuleKind::kHead,
          {adapters::Split::kOutputs, c.vocab}};
}

}  // namespace valora::models
