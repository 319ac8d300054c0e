// The decoder of all families, built from the layers that decoder_config.h describes (transformers:
// modeling_llama.py, modeling_qwen2.py, modeling_qwen3.py, modeling_mistral.py, modeling_gemma3.py,
// modeling_qwen3_5.py, and modeling_qwen3_vl.py, whose layers add visual embeddings to their
// outputs).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/batch.h"
#include "models/decoder/decoder_config.h"
#include "models/decoder/delta_net.h"
#include "models/decoder/layers.h"
#include "models/decoder/mixture.h"
#include "models/decoder/rotary.h"

namespace valora::models {

// The rotary angles of a batch's tokens.
struct Rotation {
  CosSin queries, keys;
};

class Attention {
 public:
  // layer: its name prefix, ending in a dot.
  Attention(Weights& weights, const adapters::ModuleTable& modules, const DecoderNames& names,
            const std::string& layer, const LayerConfig& config);
  // place: the index of this layer among those with attention.
  at::Tensor operator()(const at::Tensor& x, const Rotation& rotary, int64_t place,
                        const Batch& batch) const;
  void append_linears(std::vector<Linear*>& linears) {
    for (Linear& linear : qkv_) linears.push_back(&linear);
    linears.push_back(&o_proj_);
  }

 private:
  // Queries, keys and values, [T, heads · dim] each; views of one tensor if one linear computes
  // them side by side.
  std::vector<at::Tensor> queries_keys_values(const at::Tensor& x,
                                              const Adaptation& adaptation) const;
  // q, k, v: [T, heads, dim] each, before rotation. → [T, heads · dim]
  at::Tensor attend(at::Tensor q, at::Tensor k, const at::Tensor& v, const Rotation& rotary,
                    int64_t place, const Batch& batch) const;

  int64_t heads_, kv_heads_, head_dim_;  // heads_, kv_heads_: of this rank
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
  // x: [T, hidden], the residual stream; modified in place. delta: the previous layer's output, not
  // yet added to it; undefined for the first layer. Returns this layer's output, for the next layer
  // to add.
  at::Tensor operator()(at::Tensor& x, const at::Tensor& delta, const Rotation& rotary,
                        const Batch& batch) const;

  RmsNorm before_attention, before_mlp;
  std::variant<Attention, DeltaNet> mixer;
  int64_t place;  // among the layers with a mixer of this kind
  std::variant<Mlp, Mixture> mlp;
  std::optional<RmsNorm> after_attention, after_mlp;  // applied before the residual addition
  bool local_rotary;
};

// The stored names, without ".weight", of the embedding and of the output layer.
struct EmbeddingNames {
  std::string embedding, head;
};

class Decoder {
 public:
  // modules: the model's table, which holds the decoder's linears under `prefix`. Throws LoadError
  // for a missing tensor or one of the wrong shape.
  Decoder(Weights& weights, const adapters::ModuleTable& modules, const std::string& prefix,
          const std::string& lm_head, const DecoderConfig& config, at::Device device);

  at::Tensor forward(const Batch& batch) const;  // [T, hidden], after the final norm
  at::Tensor embed(const Batch& batch) const;    // [T, hidden], with visual embeddings filled in
  // [rows, hidden] → float [rows, vocab]; undefined on all ranks but the first
  at::Tensor logits(const at::Tensor& hidden, const HeadAdaptation& adaptation) const;
  std::vector<Linear*> linears();  // of all layers; adapters may target them

 private:
  Decoder(Weights& weights, const adapters::ModuleTable& modules, const std::string& prefix,
          const EmbeddingNames& names, const DecoderConfig& config, at::Device device);
  static DecoderLayer make_layer(Weights& weights, const adapters::ModuleTable& modules,
                                 const std::string& layer, const DecoderConfig& config,
                                 size_t index);
  // embed() without communication: looks up the table and applies replacements of its rows.
  at::Tensor own_embeddings(const Batch& batch) const;
  // Adds the visual embeddings meant for the output of `layer` to x, the residual stream after it.
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
