#include "models/decoder/decoder.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <tuple>

#include "base/log/log.h"
#include "base/threads/parts_done.h"
#include "models/decoder/layers.h"
#include "models/spec/load_error.h"
#include "ops/device/parallel.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/recompute.h"

namespace valora::models {
namespace {

// As in transformers since 5.18: if the checkpoint stores both tied weights, they are used as two
// tensors unless they are equal; if it stores one, that serves as both.
EmbeddingNames embedding_names(const DecoderConfig& c, Weights& weights,
                               const std::string& embedding, const std::string& head) {
  const std::string stored_embedding = embedding + ".weight", stored_head = head + ".weight";
  if (!c.tied_embeddings) return {embedding, head};
  if (!weights.has_linear(head)) return {embedding, embedding};
  if (!weights.has(stored_head))
    throw LoadError(unprocessable(
        "tie_word_embeddings is true, but the output layer is stored quantised, apart from the "
        "embedding: set it to false if the quantised one is meant"));
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

int64_t of_rank(int64_t heads, const Weights& weights) {
  return adapters::share_of(heads, weights.shard().rank, weights.shard().of).size();
}

Rotation rotation(const Rotary& rotary, const Batch& batch, const at::Tensor& lengths) {
  Rotation result;
  result.queries = result.keys = rotary(batch.positions, lengths);
  if (batch.kv) result.queries = rotary.of_queries(result.keys, batch.positions);
  return result;
}

int64_t rotated_dim(const DecoderConfig& c, const RotaryConfig& rotary) {
  const auto layer =
      std::ranges::find_if(c.layers, [](const LayerConfig& each) { return !each.delta; });
  return rotary.dim > 0 ? rotary.dim : layer->head_dim;
}

}  // namespace

Attention::Attention(Weights& weights, const adapters::ModuleTable& modules,
                     const DecoderNames& names, const std::string& layer, const LayerConfig& c)
    : heads_(of_rank(c.heads, weights)),
      kv_heads_(of_rank(c.kv_heads, weights)),
      head_dim_(c.head_dim),
      rule_{c.window, c.attention_scale},
      output_gate_(c.output_gate),
      kind_(c.qkv),
      o_proj_(table_linear(weights, modules, layer + names.o, c.o_bias)) {
  const auto add = [&](const char* name) {
    qkv_.push_back(table_linear(weights, modules, layer + name, c.qkv_bias));
  };
  if (c.qkv == Qkv::kApart) {
    add(names.q), add(names.k), add(names.v);
    place_adjacent_linears({&qkv_[0], &qkv_[1], &qkv_[2]});
  } else {
    add(names.qkv);
  }
  if (!c.qk_norm) return;
  q_norm_.emplace(weights, layer + names.q_norm, head_dim_, c.norm_eps, c.norm_offset);
  k_norm_.emplace(weights, layer + names.k_norm, head_dim_, c.norm_eps, c.norm_offset);
}

std::vector<at::Tensor> Attention::queries_keys_values(const at::Tensor& x,
                                                       const Adaptation& adaptation) const {
  if (kind_ == Qkv::kApart) return project(x, {&qkv_[0], &qkv_[1], &qkv_[2]}, adaptation);
  const at::Tensor rows = qkv_[0](x, adaptation);
  const int64_t q = heads_ * head_dim_, kv = kv_heads_ * head_dim_, each = heads_ / kv_heads_;
  if (kind_ == Qkv::kSideBySide) return rows.split_with_sizes({q, kv, kv}, 1);
  std::vector<at::Tensor> parts =
      rows.view({-1, kv_heads_, each + 2, head_dim_}).split_with_sizes({each, 1, 1}, 2);
  for (at::Tensor& part : parts) part = part.reshape({x.size(0), -1});
  return parts;
}

at::Tensor Attention::operator()(const at::Tensor& x, const Rotation& rotary, int64_t place,
                                 const Batch& batch) const {
  auto qkv = queries_keys_values(x, batch.adaptation);
  at::Tensor gate;
  if (output_gate_) {
    const auto halves = qkv[0].view({-1, heads_, 2 * head_dim_}).split(head_dim_, 2);
    qkv[0] = halves[0].reshape({-1, heads_ * head_dim_});
    gate = at::sigmoid(halves[1]).view({-1, heads_ * head_dim_});
  }
  const auto of_heads = [&](const at::Tensor& rows, int64_t heads,
                            const std::optional<RmsNorm>& norm) {
    const at::Tensor each = rows.view({-1, heads, head_dim_});
    return norm ? (*norm)(each) : each;
  };
  const at::Tensor q = of_heads(qkv[0], heads_, q_norm_), k = of_heads(qkv[1], kv_heads_, k_norm_);
  const at::Tensor v = qkv[2].view({-1, kv_heads_, head_dim_});
  at::Tensor attended = attend(q, k, v, rotary, place, batch);
  if (gate.defined()) attended = attended * gate;
  return o_proj_(attended, batch.adaptation);
}

at::Tensor Attention::attend(at::Tensor q, at::Tensor k, const at::Tensor& v,
                             const Rotation& rotary, int64_t place, const Batch& batch) const {
  if (batch.kv)
    return ops::rotated_paged_attention(q, k, v, rotary.queries, rotary.keys, *batch.kv, place,
                                        batch.spans, rule_, &batch.tables);
  ops::rotate_half(q, rotary.queries.cos, rotary.queries.sin);
  ops::rotate_half(k, rotary.keys.cos, rotary.keys.sin);
  return ops::sequence_attention(q, k, v, batch.spans, rule_);
}

Mlp::Mlp(Weights& weights, const adapters::ModuleTable& modules, const DecoderNames& names,
         const std::string& layer, const LayerConfig& c)
    : gate_proj_(table_linear(weights, modules, layer + names.gate, c.mlp_bias)),
      up_proj_(table_linear(weights, modules, layer + names.up, c.mlp_bias)),
      down_proj_(table_linear(weights, modules, layer + names.down, c.mlp_bias)),
      activation_(c.gate) {
  place_adjacent_linears({&gate_proj_, &up_proj_});
}

at::Tensor Mlp::operator()(const at::Tensor& x, const Adaptation& adaptation) const {
  return down_proj_(gated(x, gate_proj_, up_proj_, adaptation, activation_), adaptation);
}

Decoder::Decoder(Weights& weights, const adapters::ModuleTable& modules, const std::string& prefix,
                 const std::string& lm_head, const DecoderConfig& c, at::Device device)
    : Decoder(weights, modules, prefix,
              embedding_names(c, weights, prefix + c.names.embedding, lm_head), c, device) {}

Decoder::Decoder(Weights& weights, const adapters::ModuleTable& modules, const std::string& prefix,
                 const EmbeddingNames& names, const DecoderConfig& c, at::Device device)
    : embed_tokens_(weights.get(names.embedding + ".weight", {c.vocab, c.hidden})),
      embedding_scale_(c.embedding_scale),
      rotary_(c.rotary, rotated_dim(c, c.rotary), device),
      norm_(weights, prefix + c.names.norm, c.hidden, c.norm_eps, c.norm_offset),
      lm_head_(weights, names.head, c.hidden, c.vocab, false,
               modules.first_of(adapters::ModuleKind::kHead), LinearPart::kHead,
               {adapters::Split::kOutputs, c.vocab}),
      shard_(weights.shard()) {
  if (c.local_rotary)
    local_rotary_.emplace(*c.local_rotary, rotated_dim(c, *c.local_rotary), device);
  for (size_t i = 0; i < c.layers.size(); ++i)
    layers_.push_back(
        make_layer(weights, modules, prefix + c.names.layers + std::to_string(i) + ".", c, i));
}

DecoderLayer Decoder::make_layer(Weights& weights, const adapters::ModuleTable& modules,
                                 const std::string& layer, const DecoderConfig& c, size_t index) {
  const LayerConfig& l = c.layers[index];
  const auto norm = [&](const char* name) {
    return RmsNorm(weights, layer + name, c.hidden, l.norm_eps, l.norm_offset);
  };
  const auto norm_if = [&](const char* name) {
    return name ? std::optional(norm(name)) : std::nullopt;
  };
  using Mixer = std::variant<Attention, DeltaNet>;
  using Inner = std::variant<Mlp, Mixture>;
  const int64_t place = std::count_if(
      c.layers.begin(), c.layers.begin() + static_cast<int64_t>(index),
      [&](const LayerConfig& before) { return before.delta.has_value() == l.delta.has_value(); });
  return {norm(c.names.input_norm),
          norm(c.names.inner_norm),
          l.delta ? Mixer(DeltaNet(weights, modules, layer, l))
                  : Mixer(Attention(weights, modules, c.names, layer, l)),
          place,
          l.mixture ? Inner(Mixture(weights, modules, layer, *l.mixture, c.hidden, l.gate))
                    : Inner(Mlp(weights, modules, c.names, layer, l)),
          norm_if(c.names.attention_norm),
          norm_if(c.names.mlp_norm),
          l.local_rotary};
}

// Ranks with their own memory receive rank 0's embeddings: it has the table and the towers'
// outputs.
at::Tensor Decoder::embed(const Batch& batch) const {
  if (shard_.of == 1 || embed_tokens_.is_cpu()) return own_embeddings(batch);
  const at::Tensor x = shard_.rank == 0
                           ? own_embeddings(batch)
                           : at::empty({batch.tokens.size(0), embed_tokens_.size(1)},
                                       embed_tokens_.options().device(batch.tokens.device()));
  shard_.communicator->broadcast(shard_.rank,
                                 {static_cast<std::byte*>(x.mutable_data_ptr()), x.nbytes()});
  return x;
}

at::Tensor Decoder::own_embeddings(const Batch& batch) const {
  // Adapters that add tokens use ids beyond the base table; so may placeholders of pictures, whose
  // rows are replaced below.
  const int64_t last = embed_tokens_.size(0) - 1;
  const bool may_be_beyond = !batch.vocabulary.empty() || !batch.visual.empty();
  at::Tensor x =
      at::embedding(embed_tokens_, may_be_beyond ? batch.tokens.clamp_max(last) : batch.tokens);
  for (const VocabularyUse& use : batch.vocabulary)
    ops::adapt_embeddings(x.slice(0, use.begin, use.end),
                          batch.host_tokens.slice(0, use.begin, use.end), *use.weights,
                          use.coefficient);
  if (embedding_scale_ != 1) x.mul_(at::scalar_tensor(embedding_scale_, x.options()));
  for (const VisualRows& rows : batch.visual)
    x.narrow(0, rows.token, rows.embeddings.size(0)).copy_(rows.embeddings.narrow(1, 0, x.size(1)));
  return x;
}

void Decoder::add_level(const Batch& batch, size_t layer, at::Tensor& x) {
  const int64_t hidden = x.size(1), column = static_cast<int64_t>(1 + layer) * hidden;
  const auto has_level = [&](const VisualRows& rows) { return rows.embeddings.size(1) > column; };
  if (std::ranges::none_of(batch.visual, has_level)) return;
  if (c10::GradMode::is_enabled()) x = x.clone();  // the layer keeps it for its backward pass
  for (const VisualRows& rows : batch.visual)
    if (has_level(rows))
      x.narrow(0, rows.token, rows.embeddings.size(0))
          .add_(rows.embeddings.narrow(1, column, hidden));
}

at::Tensor DecoderLayer::operator()(at::Tensor& x, const at::Tensor& delta, const Rotation& rotary,
                                    const Batch& batch) const {
  const at::Tensor normed =
      delta.defined() ? before_attention.add_and_norm(x, delta) : before_attention(x);
  const auto* attention = std::get_if<Attention>(&mixer);
  at::Tensor attended = attention ? (*attention)(normed, rotary, place, batch)
                                  : std::get<DeltaNet>(mixer)(normed, place, batch);
  if (after_attention) attended = (*after_attention)(attended);
  const at::Tensor inner = before_mlp.add_and_norm(x, attended);
  const at::Tensor added =
      std::visit([&](const auto& each) { return each(inner, batch.adaptation); }, mlp);
  return after_mlp ? (*after_mlp)(added) : added;
}

at::Tensor Decoder::forward(const Batch& batch) const {
  // The residual stream.
  at::Tensor x = batch.embedded.defined() ? batch.embedded : embed(batch);
  const Rotation shared = rotation(rotary_, batch, batch.rope_lengths),
                 local = local_rotary_ ? rotation(*local_rotary_, batch, {}) : Rotation();
  at::Tensor delta;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Rotation& rotary = layers_[i].local_rotary ? local : shared;
    if (batch.recompute)
      std::tie(x, delta) = recomputed_layer(x, delta, rotary, i, batch);
    else
      delta = layers_[i](x, delta, rotary, batch);
    add_level(batch, i, x);
    ++parts_done();
  }
  return norm_.add_and_norm(x, delta);
}

// The first layer's input may not require gradients (frozen embeddings), but its adapters do.
std::pair<at::Tensor, at::Tensor> Decoder::recomputed_layer(at::Tensor x, const at::Tensor& delta,
                                                            const Rotation& rotary, size_t index,
                                                            const Batch& batch) const {
  if (!x.requires_grad()) x = x.detach().set_requires_grad(true);
  std::vector<at::Tensor> inputs{x};
  if (delta.defined()) inputs.push_back(delta);
  const auto outputs = ops::recomputed(
      [this, rotary, index, &batch](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
        at::Tensor stream = in[0].clone();  // the layer modifies it in place
        const at::Tensor added =
            layers_[index](stream, in.size() > 1 ? in[1] : at::Tensor(), rotary, batch);
        return {stream, added};
      },
      inputs);
  return {outputs[0], outputs[1]};
}

std::vector<Linear*> Decoder::linears() {
  std::vector<Linear*> linears;
  for (DecoderLayer& layer : layers_) {
    std::visit([&](auto& mixer) { mixer.append_linears(linears); }, layer.mixer);
    std::visit([&](auto& mlp) { mlp.append_linears(linears); }, layer.mlp);
  }
  return linears;
}

at::Tensor Decoder::logits(const at::Tensor& hidden, const HeadAdaptation& adaptation) const {
  int64_t replaced = 0;  // rows whose adapters replace the output layer
  for (const VocabularyUse& use : adaptation.vocabulary)
    if (use.weights->head) replaced += use.end - use.begin;
  int64_t columns = lm_head_.slice().out;
  const auto empty = [&] {
    return at::empty({hidden.size(0), columns}, hidden.options().dtype(at::kFloat));
  };
  at::Tensor logits;
  if (replaced == hidden.size(0)) {
    if (shard_.rank == 0) logits = empty();
  } else {
    logits = lm_head_.wide(hidden, adaptation.lora);
    if (shard_.of > 1) {
      const at::Tensor part = logits;
      logits = shard_.rank == 0 ? empty() : at::Tensor();
      shard_.communicator->gather_columns(
          shard_.rank, {part.const_data_ptr<float>(), static_cast<size_t>(part.numel())},
          part.size(0), logits.defined() ? logits.mutable_data_ptr<float>() : nullptr,
          ops::torch_parallel());
    }
  }
  if (!logits.defined()) return logits;
  for (const VocabularyUse& use : adaptation.vocabulary)
    columns = std::max(columns, use.weights->tokens);
  if (columns > logits.size(1)) {
    const at::Tensor narrow = logits;
    logits = empty();
    logits.narrow(1, 0, narrow.size(1)).copy_(narrow);
    logits.narrow(1, narrow.size(1), columns - narrow.size(1)).fill_(-INFINITY);
  }
  for (const VocabularyUse& use : adaptation.vocabulary)
    ops::adapt_logits(hidden.slice(0, use.begin, use.end), *use.weights,
                      logits.slice(0, use.begin, use.end));
  return logits;
}

}  // namespace valora::models
