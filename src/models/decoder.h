// The decoder that Qwen2, Llama and the vision-language families over them share: pre-norm,
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
  bool tied_embeddings = false;
  bool tied_without_head =
      false;  // said beside the text configuration: holds where the checkpoint has no output layer
  int64_t max_positions = 0;
  RotaryConfig rotary;
};

// `text` is config.json or its text_config; `top` the whole (tie_word_embeddings may stand there).
// What the file leaves out is taken from `defaults`; sizes that are 0 there must be in the file.
DecoderConfig read_decoder_config(const ConfigReader& text, const ConfigReader& top,
                                  const DecoderConfig& defaults);
// A ModelSpec of the decoder's shape, without modules.
ModelSpec decoder_spec(const DecoderConfig& config, const std::string& architecture);
// The decoder's linears under `prefix` ("model."), then its embeddings.
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
  // x: the residual stream; delta: what the layer before adds to it, undefined before the first.
  // Gives what this one adds.
  at::Tensor operator()(at::Tensor& x, const at::Tensor& delta, const CosSin& rotary, int64_t index,
                        const Batch& batch) const;

  RmsNorm input_layernorm, post_attention_layernorm;
  Attention self_attn;
  Mlp mlp;
};

class Decoder {
 public:
  // modules: the model's table, with the decoder's linears under `prefix`.
  Decoder(Weights& weights, const adapters::ModuleTable& modules, const std::string& prefix,
          const std::string& lm_head, const DecoderConfig& config, at::Device device);

  at::Tensor forward(const Batch& batch) const;       // [T, hidden], after the last norm
  at::Tensor logits(const at::Tensor& hidden) const;  // float [rows, vocab]
  std::vector<Linear*> linears();  // of all layers: those that adapters may touch

 private:
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
