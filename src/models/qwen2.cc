#include "models/qwen2.h"

#include "models/decoder.h"

namespace valora::models {
namespace {

ModelSpec qwen2_spec(const ConfigReader& config) {
  const DecoderConfig c = read_decoder_config(config, config);
  ModelSpec spec;
  spec.architecture = "Qwen2ForCausalLM";
  spec.vocab = c.vocab;
  spec.hidden = c.hidden;
  spec.layers = c.layers;
  spec.kv_heads = c.kv_heads;
  spec.head_dim = c.head_dim;
  spec.max_positions = c.max_positions;
  std::vector<adapters::Module> modules;
  add_decoder_modules(c, "model.", modules);
  modules.push_back({"lm_head", c.hidden, c.vocab, false, -1});
  spec.modules = adapters::ModuleTable(std::move(modules), {}, c.hidden);
  return spec;
}

class Qwen2ForCausalLM final : public Model {
 public:
  Qwen2ForCausalLM(const ConfigReader& config, Weights& weights, at::Device device)
      : Model(qwen2_spec(config)), model_(weights, "model.", "lm_head", read_decoder_config(config, config), 0, device) {}

  at::Tensor forward(const Batch& batch) const override { return model_.forward(batch); }
  at::Tensor logits(const at::Tensor& hidden) const override { return model_.logits(hidden); }

 private:
  Decoder model_;
};

}  // namespace

Family qwen2_family() {
  return {
      .architecture = "Qwen2ForCausalLM",
      .spec = qwen2_spec,
      .build = [](const ConfigReader& config, Weights& weights, at::Device device) -> std::unique_ptr<Model> {
        return std::make_unique<Qwen2ForCausalLM>(config, weights, device);
      },
      .positions = [](const ModelSpec& spec, int tokens, std::span<const VisualSpan>) { return text_positions(tokens, spec.axes); },
      .chat_format = [] { return text::make_chatml(); },
      .processor = nullptr,
  };
}

}  // namespace valora::models
