// The decoder of Qwen2, Llama and the vision-language families based on them: pre-norm,
// grouped-query attention with rotary positions, gated MLP (transformers: modeling_qwen2.py,
// Qwen2Model).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/batch.h"
#include "models/layers.h"
#include "models/model.h"
#include "models/rotary.h"

namespace valora::models {

struct DecoderConfig {
  int64_t vocab = 0, hidden = 0, intermediate = 0, layers = 0;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  double norm_eps = 1e-6;
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  // The output layer is the embedding, unless the checkpoint has another one.
  bool tied_embeddings = false;
  int64_t max_positions = 0;
  RotaryConfig rotary;
};

// Reads the decoder's configuration. text: config.json or its text_config. top: config.json, which
// may hold tie_word_embeddings. defaults: values for missing keys; a size that is 0 there must be
// in the file. Throws LoadError.
DecoderConfig read_decoder_config(const ConfigReader& text, const ConfigReader& top,
                                  const DecoderConfig& defaults);
// A ModelSpec with the sizes of the decoder, without modules.
ModelSpec decoder_spec(const DecoderConfig& config, const std::string& architecture);
// Appends the decoder's linears under `prefix` ("model."), then its embeddings.
void add_decoder_modules(const DecoderConfig& config, const std::string& prefix,
                         std::vector<adapters::Module>& modules);

class Attention {
 public:
  Attention(Weights& weights, const adapters::ModuleTable& modules, const std::string& name,
            const DecoderConfig& config);
  at::Tensor operator()(const at::Tensor& x, const CosSin& rotary, int64_t layer,
                        const Batch& batch) const;
  void append_linears(std::vector<Linear*>& linears) {
    linears.insert(linears.end(), {&q_proj_, &k_proj_, &v_proj_, &o_proj_});
  }

 private:
  int64_t heads_, kv_heads_, head_dim_;
  Linear q_proj_, k_proj_, v_proj_, o_proj_;
};

class Mlp {
 public:
  Mlp(Weights& weights, const adapters::ModuleTable& modules, const std::string& name,
      const DecoderConfig& config);
  at::Tensor operator()(const at::Tensor& x, const Adaptation& adaptation) const;
  void append_linears(std::vector<Linear*>& linears) {
    linears.insert(linears.end(), {&gate_proj_, &up_proj_, &down_proj_});
  }

 private:
  Linear gate_proj_, up_proj_, down_proj_;
};

struct DecoderLayer {
  // x: [T, hidden], the residual stream; changed in place. delta: what the previous layer adds to
  // it; undefined for the first layer. Returns what this layer adds.
  at::Tensor operator()(at::Tensor& x, const at::Tensor& delta, const CosSin& rotary, int64_t index,
                        const Batch& batch) const;

  RmsNorm input_layernorm, post_attention_layernorm;
  Attention self_attn;
  Mlp mlp;
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

  at::Tensor forward(const Batch& batch) const;       // [T, hidden], after the final norm
  at::Tensor logits(const at::Tensor& hidden) const;  // [rows, hidden] → float [rows, vocab]
  std::vector<Linear*> linears();  // the linears that adapters may target, of all layers

 private:
  Decoder(Weights& weights, const adapters::ModuleTable& modules, const std::string& prefix,
          const EmbeddingNames& names, const DecoderConfig& config, at::Device device);
  at::Tensor embed(const Batch& batch) const;
  std::pair<at::Tensor, at::Tensor> recomputed_layer(at::Tensor x, const at::Tensor& delta,
                                                     const CosSin& rotary, size_t index,
                                                     const Batch& batch) const;

  at::Tensor embed_tokens_;
  Rotary rotary_;
  std::vector<DecoderLayer> layers_;
  RmsNorm norm_;
  Linear lm_head_;
};

}  // namespace valora::models
