#include "models/decoder.h"

#include <tuple>

#include "base/log.h"
#include "base/parts_done.h"
#include "models/table_linear.h"
#include "ops/elementwise.h"
#include "ops/recompute.h"

namespace valora::models {
namespace {

// Bounds the rotary frequencies, which are allocated before any tensor is checked.
constexpr int64_t kMaxHeadDim = 1 << 14;

// Attention windows that are shorter than the served positions would change answers.
void check_windows(const ConfigReader& text, const DecoderConfig& c) {
  constexpr int64_t kQwen2Window = 4096, kQwen2FullLayers = 28;  // Qwen2Config's defaults
  const bool switched = text.has("use_sliding_window");
  const bool on = text.flag("use_sliding_window", false);
  const int64_t window = text.has("sliding_window") ? text.integer("sliding_window")
                         : on                       ? kQwen2Window
                                                    : c.max_positions;
  const bool cuts = window < c.max_positions, wide = text.has("sliding_window") && !cuts;
  for (const std::string& type : text.texts("layer_types"))
    if (type != "full_attention" && !(wide && type == "sliding_attention"))
      text.refuse("layers of type \"" + type + "\" (layer_types) are not supported");
  if (!cuts || text.has("layer_types")) return;
  if (on && text.number("max_window_layers", kQwen2FullLayers) < static_cast<double>(c.layers))
    text.refuse("sliding-window attention (use_sliding_window) is not supported");
  if (!switched)
    text.refuse("sliding-window attention (sliding_window " + std::to_string(window) +
                ") is not supported; remove the key if the model attends to all positions");
}

// As transformers does since 5.18: tied weights of which the checkpoint has two are apart unless
// they are equal, and one stands for the other.
EmbeddingNames embedding_names(const DecoderConfig& c, Weights& weights,
                               const std::string& embedding, const std::string& head) {
  const std::string stored_embedding = embedding + ".weight", stored_head = head + ".weight";
  if (!c.tied_embeddings) return {embedding, head};
  if (!weights.has(stored_head)) return {embedding, embedding};
  if (!weights.has(stored_embedding)) return {head, head};
  if (weights.device().is_meta()) return {embedding, head};  // no values to compare
  const std::vector<int64_t> shape{c.vocab, c.hidden};
  if (at::equal(weights.view(stored_embedding, shape), weights.view(stored_head, shape)))
    return {embedding, embedding};
  spdlog::warn(
      "tie_word_embeddings is true, but the stored lm_head.weight differs from the embedding and "
      "is used, as transformers does since 5.18; transformers 4 and vLLM use the embedding");
  return {embedding, head};
}

}  // namespace

DecoderConfig read_decoder_config(const ConfigReader& text, const ConfigReader& top,
                                  const DecoderConfig& defaults) {
  const auto size = [&](const char* key, int64_t fallback) {
    return fallback > 0 ? text.integer(key, fallback) : text.integer(key);
  };
  DecoderConfig c = defaults;
  c.vocab = size("vocab_size", defaults.vocab);
  c.hidden = size("hidden_size", defaults.hidden);
  c.intermediate = size("intermediate_size", defaults.intermediate);
  c.layers = size("num_hidden_layers", defaults.layers);
  if (c.layers > kMaxLayers)
    text.refuse("\"num_hidden_layers\" is out of range: " + std::to_string(c.layers));
  c.heads = size("num_attention_heads", defaults.heads);
  c.kv_heads = text.integer("num_key_value_heads", c.heads);
  if (c.heads % c.kv_heads != 0)
    text.refuse("\"num_attention_heads\" is not a multiple of \"num_key_value_heads\"");
  if (!text.has("head_dim") && c.hidden % c.heads != 0)
    text.refuse("\"hidden_size\" is not a multiple of \"num_attention_heads\"");
  c.head_dim = text.at_most("head_dim", kMaxHeadDim, c.hidden / c.heads);
  if (c.head_dim % 2 != 0) text.refuse("the head size is odd: " + std::to_string(c.head_dim));
  c.norm_eps = text.number("rms_norm_eps", defaults.norm_eps);
  c.tied_embeddings =
      text.flag("tie_word_embeddings", false) || top.flag("tie_word_embeddings", false);
  c.max_positions = text.integer("max_position_embeddings",
                                 defaults.max_positions > 0 ? defaults.max_positions : 32768);
  c.rotary = read_rotary(text, c.head_dim, defaults.rotary.theta, c.max_positions);
  c.max_positions = c.rotary.max_positions;
  if (const std::string act = text.text("hidden_act", "silu"); act != "silu" && act != "swish")
    text.refuse("hidden_act \"" + act + "\" is not supported");
  check_windows(text, c);
  if (top.has("quantization_config"))
    top.refuse("quantised checkpoints (quantization_config) are not supported");
  return c;
}

ModelSpec decoder_spec(const DecoderConfig& c, const std::string& architecture) {
  ModelSpec spec;
  spec.architecture = architecture;
  spec.vocab = c.vocab;
  spec.hidden = c.hidden;
  spec.layers = c.layers;
  spec.heads = c.heads;
  spec.kv_heads = c.kv_heads;
  spec.head_dim = c.head_dim;
  spec.max_positions = c.max_positions;
  spec.rope_change = c.rotary.change;
  spec.axes = c.rotary.sections.empty() ? 1 : 3;
  return spec;
}

void add_decoder_modules(const DecoderConfig& c, const std::string& prefix,
                         std::vector<adapters::Module>& modules) {
  const int64_t q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = prefix + "layers." + std::to_string(i) + ".";
    modules.push_back({layer + "self_attn.q_proj", c.hidden, q, true, i});
    modules.push_back({layer + "self_attn.k_proj", c.hidden, kv, true, i});
    modules.push_back({layer + "self_attn.v_proj", c.hidden, kv, true, i});
    modules.push_back({layer + "self_attn.o_proj", q, c.hidden, true, i});
    modules.push_back({layer + "mlp.gate_proj", c.hidden, c.intermediate, true, i});
    modules.push_back({layer + "mlp.up_proj", c.hidden, c.intermediate, true, i});
    modules.push_back({layer + "mlp.down_proj", c.intermediate, c.hidden, true, i});
  }
  modules.push_back({prefix + "embed_tokens", c.vocab, c.hidden, false, -1});
}

Attention::Attention(Weights& weights, const adapters::ModuleTable& modules,
                     const std::string& name, const DecoderConfig& c)
    : heads_(c.heads),
      kv_heads_(c.kv_heads),
      head_dim_(c.head_dim),
      q_proj_(table_linear(weights, modules, name + ".q_proj", c.qkv_bias)),
      k_proj_(table_linear(weights, modules, name + ".k_proj", c.qkv_bias)),
      v_proj_(table_linear(weights, modules, name + ".v_proj", c.qkv_bias)),
      o_proj_(table_linear(weights, modules, name + ".o_proj", c.o_bias)) {}

at::Tensor Attention::operator()(const at::Tensor& x, const CosSin& rotary, int64_t layer,
                                 const Batch& batch) const {
  const auto qkv = project(x, {&q_proj_, &k_proj_, &v_proj_}, batch.adaptation);
  at::Tensor q = qkv[0].view({-1, heads_, head_dim_}), k = qkv[1].view({-1, kv_heads_, head_dim_});
  const at::Tensor v = qkv[2].view({-1, kv_heads_, head_dim_});
  ops::rotate_half(q, rotary.cos, rotary.sin);
  ops::rotate_half(k, rotary.cos, rotary.sin);
  const at::Tensor attended =
      batch.kv ? ops::paged_attention(q, k, v, *batch.kv, layer, batch.spans, 0, &batch.tables)
               : ops::causal_attention(q, k, v, batch.spans);
  return o_proj_(attended, batch.adaptation);
}

Mlp::Mlp(Weights& weights, const adapters::ModuleTable& modules, const std::string& name,
         const DecoderConfig& c)
    : gate_proj_(table_linear(weights, modules, name + ".gate_proj", c.mlp_bias)),
      up_proj_(table_linear(weights, modules, name + ".up_proj", c.mlp_bias)),
      down_proj_(table_linear(weights, modules, name + ".down_proj", c.mlp_bias)) {}

at::Tensor Mlp::operator()(const at::Tensor& x, const Adaptation& adaptation) const {
  return down_proj_(gated(x, gate_proj_, up_proj_, adaptation), adaptation);
}

Decoder::Decoder(Weights& weights, const adapters::ModuleTable& modules, const std::string& prefix,
                 const std::string& lm_head, const DecoderConfig& c, at::Device device)
    : Decoder(weights, modules, prefix,
              embedding_names(c, weights, prefix + "embed_tokens", lm_head), c, device) {}

Decoder::Decoder(Weights& weights, const adapters::ModuleTable& modules, const std::string& prefix,
                 const EmbeddingNames& names, const DecoderConfig& c, at::Device device)
    : embed_tokens_(weights.get(names.embedding + ".weight", {c.vocab, c.hidden})),
      rotary_(c.rotary, c.head_dim, device),
      norm_(weights, prefix + "norm", c.hidden, c.norm_eps),
      lm_head_(weights, names.head, c.hidden, c.vocab, false) {
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = prefix + "layers." + std::to_string(i) + ".";
    layers_.push_back({RmsNorm(weights, layer + "input_layernorm", c.hidden, c.norm_eps),
                       RmsNorm(weights, layer + "post_attention_layernorm", c.hidden, c.norm_eps),
                       Attention(weights, modules, layer + "self_attn", c),
                       Mlp(weights, modules, layer + "mlp", c)});
  }
}

at::Tensor Decoder::embed(const Batch& batch) const {
  at::Tensor x = at::embedding(embed_tokens_, batch.tokens);
  for (const VisualRows& rows : batch.visual)
    x.narrow(0, rows.token, rows.embeddings.size(0)).copy_(rows.embeddings);
  return x;
}

at::Tensor DecoderLayer::operator()(at::Tensor& x, const at::Tensor& delta, const CosSin& rotary,
                                    int64_t index, const Batch& batch) const {
  const at::Tensor normed =
      delta.defined() ? input_layernorm.after_adding(x, delta) : input_layernorm(x);
  const at::Tensor attended = self_attn(normed, rotary, index, batch);
  return mlp(post_attention_layernorm.after_adding(x, attended), batch.adaptation);
}

at::Tensor Decoder::forward(const Batch& batch) const {
  at::Tensor x = embed(batch);  // the residual stream
  const CosSin rotary = rotary_(batch.positions, batch.rope_lengths);
  at::Tensor delta;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (batch.recompute)
      std::tie(x, delta) = recomputed_layer(x, delta, rotary, i, batch);
    else
      delta = layers_[i](x, delta, rotary, static_cast<int64_t>(i), batch);
    ++parts_done();
  }
  return norm_.after_adding(x, delta);
}

// The input of the first layer may not require gradients (frozen embeddings), but the adapters in
// it need them.
std::pair<at::Tensor, at::Tensor> Decoder::recomputed_layer(at::Tensor x, const at::Tensor& delta,
                                                            const CosSin& rotary, size_t index,
                                                            const Batch& batch) const {
  if (!x.requires_grad()) x = x.detach().set_requires_grad(true);
  std::vector<at::Tensor> inputs{x};
  if (delta.defined()) inputs.push_back(delta);
  const auto outputs = ops::recomputed(
      [this, rotary, index, &batch](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
        at::Tensor stream = in[0].clone();  // the layer changes it in place
        const at::Tensor added = layers_[index](stream, in.size() > 1 ? in[1] : at::Tensor(),
                                                rotary, static_cast<int64_t>(index), batch);
        return {stream, added};
      },
      inputs);
  return {outputs[0], outputs[1]};
}

std::vector<Linear*> Decoder::linears() {
  std::vector<Linear*> linears;
  for (DecoderLayer& layer : layers_) {
    layer.self_attn.append_linears(linears);
    layer.mlp.append_linears(linears);
  }
  return linears;
}

at::Tensor Decoder::logits(const at::Tensor& hidden) const { return lm_head_.wide(hidden); }

}  // namespace valora::models
