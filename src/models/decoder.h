// The decoder of all families, made of layers as decoder_config.h describes them (transformers:
// modeling_llama.py, modeling_qwen2.py, modeling_qwen3.py, modeling_mistral.py, modeling_gemma3.py;
// modeling_qwen3_5.py; the layers of modeling_qwen3_vl.py, which add visual embeddings to their
// outputs).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/batch.h"
#include "models/decoder_config.h"
#include "models/delta_net.h"
#include "models/layers.h"
#include "models/rotary.h"

namespace valora::models {

// Of the tokens of a batch.
struct Rotation {
  CosSin queries, keys;
};

class Attention {
 public:
  // layer: its name, with a dot at the end.
  Attention(Weights& weights, const adapters::ModuleTable& modules, const DecoderNames& names,
            const std::string& layer, const LayerConfig& config);
  // place: of this layer among those with attention.
  at::Tensor operator()(const at::Tensor& x, const Rotation& rotary, int64_t place,
                        const Batch& batch) const;
  void append_linears(std::vector<Linear*>& linears) {
    for (Linear& linear : qkv_) linears.push_back(&linear);
    linears.push_back(&o_proj_);
  }

 private:
  // Queries, keys and values, [T, heads · dim] each; views of one tensor if they are side by side.
  std::vector<at::Tensor> queries_keys_values(const at::Tensor& x,
                                              const Adaptation& adaptation) const;
  // q, k, v: [T, heads, dim] each, not rotated yet. → [T, heads · dim]
  at::Tensor attend(at::Tensor q, at::Tensor k, const at::Tensor& v, const Rotation& rotary,
                    int64_t place, const Batch& batch) const;

  int64_t heads_, kv_heads_, head_dim_;  // heads: of the rank
  ops::AttentionRule rule_;
  bool output_gate_;
  Qkv kind_;
  std::vector<Linear> qkv_;  // one or three
  Linear o_proj_;
  std::optional<RmsNorm> q_norm_, k_norm_;
};

class Mlp {
 public:
  Mlp(Weights& weights, const adapters::ModuleTable& modules, const DecoderNames& names,
      const std::string& layer, const LayerConfig& config);
  at::Tensor operator()(const at::Tensor& x, const Adaptation& adaptation) const;
  void append_linears(std::vector<Linear*>& linears) {
    linears.insert(linears.end(), {&gate_proj_, &up_proj_, &down_proj_});
  }

 private:
  Linear gate_proj_, up_proj_, down_proj_;
  ops::Gate activation_;
};

struct DecoderLayer {
  // x: [T, hidden], the residual stream; changed in place. delta: what the previous layer adds to
  // it; undefined for the first layer. Returns what this layer adds.
  at::Tensor operator()(at::Tensor& x, const at::Tensor& delta, const Rotation& rotary,
                        const Batch& batch) const;

  RmsNorm before_attention, before_mlp;
  std::variant<Attention, DeltaNet> mixer;
  int64_t place;  // among the layers with a mixer of this kind
  Mlp mlp;
  std::optional<RmsNorm> after_attention, after_mlp;  // of what they add
  bool local_rotary;
};

// The stored names, without ".weight", of the embedding and of the output layer.
struct EmbeddingNames {
  std::string embedding, head;
};

class Decoder {
 public:
  // modules: the model's table, which holds the decoder's linears under `prefix`. Throws LoadError
  // for a tensor that is missing or of another shape.
  Decoder(Weights& weights, const adapters::ModuleTable& modules, const std::string& prefix,
          const std::string& lm_head, const DecoderConfig& config, at::Device device);

  at::Tensor forward(const Batch& batch) const;  // [T, hidden], after the final norm
  at::Tensor embed(const Batch& batch) const;    // [T, hidden], visual embeddings among them
  // [rows, hidden] → float [rows, vocab]; undefined on ranks other than the first
  at::Tensor logits(const at::Tensor& hidden, const HeadAdaptation& adaptation) const;
  std::vector<Linear*> linears();  // the linears that adapters may target, of all layers

 private:
  Decoder(Weights& weights, const adapters::ModuleTable& modules, const std::string& prefix,
          const EmbeddingNames& names, const DecoderConfig& config, at::Device device);
  static DecoderLayer make_layer(Weights& weights, const adapters::ModuleTable& modules,
                                 const std::string& layer, const DecoderConfig& config,
                                 size_t index);
  // Adds the visual embeddings that belong to this layer's output, whose residual stream is x.
  static void add_level(const Batch& batch, size_t layer, at::Tensor& x);
  std::pair<at::Tensor, at::Tensor> recomputed_layer(at::Tensor x, const at::Tensor& delta,
                                                     const Rotation& rotary, size_t index,
                                                     const Batch& batch) const;

  at::Tensor embed_tokens_;
  double embedding_scale_;
  Rotary rotary_;
  std::optional<Rotary> local_rotary_;
  std::vector<DecoderLayer> layers_;
  RmsNorm norm_;
  Linear lm_head_;
  Shard shard_;
};

}  // namespace valora::models
