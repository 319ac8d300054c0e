#include "models/causal_lm.h"

namespace valora::models {
namespace {

constexpr char kPrefix[] = "model.";

class CausalLm final : public Model {
 public:
  CausalLm(const DecoderConfig& config, ModelSpec spec, Weights& weights, at::Device device)
      : Model(std::move(spec)),
        model_(weights, this->spec().modules, kPrefix, "lm_head", config, device) {}

  at::Tensor forward(const Batch& batch) const override { return model_.forward(batch); }
  at::Tensor embed(const Batch& batch) const override { return model_.embed(batch); }
  at::Tensor logits(const at::Tensor& hidden, const HeadAdaptation& adaptation) const override {
    return model_.logits(hidden, adaptation);
  }
  std::vector<Linear*> decoder_linears() override { return model_.linears(); }

 private:
  Decoder model_;
};

}  // namespace

ModelSpec causal_lm_spec(const DecoderConfig& config, const std::string& architecture) {
  ModelSpec spec = decoder_spec(config, architecture);
  std::vector<adapters::Module> modules;
  add_decoder_modules(config, kPrefix, modules);
  modules.push_back(head_module(config, "lm_head"));
  spec.modules = adapters::ModuleTable(std::move(modules), {}, config.hidden);
  return spec;
}

std::unique_ptr<Model> make_causal_lm(const DecoderConfig& config, const std::string& architecture,
                                      Weights& weights, at::Device device) {
  return make_causal_lm(config, causal_lm_spec(config, architecture), weights, device);
}

std::unique_ptr<Model> make_causal_lm(const DecoderConfig& config, ModelSpec spec, Weights& weights,
                                      at::Device device) {
  return std::make_unique<CausalLm>(config, std::move(spec), weights, device);
}

Positions causal_lm_positions(const ModelSpec& spec, int tokens, std::span<const VisualSpan>) {
  return text_positions(tokens, spec.axes);
}

}  // namespace valora::models
