#include "models/families/causal_lm.h"

#include <utility>

namespace valora::models {
namespace {

constexpr char kPrefix[] = "model.";

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
  return make_vision_language_model(std::move(spec), nullptr, config, kPrefix, "lm_head", weights,
                                    device);
}

Positions causal_lm_positions(const ModelSpec& spec, int tokens, std::span<const VisualSpan>) {
  return text_positions(tokens, spec.axes);
}

namespace {

class VisionLanguageModel final : public Model {
 public:
  VisionLanguageModel(ModelSpec spec, std::unique_ptr<VisionEncoder> vision,
                      const DecoderConfig& decoder, const std::string& prefix,
                      const std::string& head, Weights& weights, at::Device device)
      : Model(std::move(spec)),
        vision_(std::move(vision)),
        decoder_(weights, this->spec().modules, prefix, head, decoder, device) {}

  at::Tensor forward(const Batch& batch) const override { return decoder_.forward(batch); }
  at::Tensor embed(const Batch& batch) const override { return decoder_.embed(batch); }
  at::Tensor logits(const at::Tensor& hidden, const HeadAdaptation& adaptation) const override {
    return decoder_.logits(hidden, adaptation);
  }
  std::vector<Linear*> decoder_linears() override { return decoder_.linears(); }

  std::unique_ptr<Encoding> begin_encoding(std::vector<VisualItem> items,
                                           PieceSize pieces) const override {
    return vision_ ? vision_->begin(std::move(items), pieces)
                   : Model::begin_encoding(std::move(items), pieces);
  }

 private:
  std::unique_ptr<VisionEncoder> vision_;
  Decoder decoder_;
};

}  // namespace

std::unique_ptr<Model> make_vision_language_model(
    ModelSpec spec, std::unique_ptr<VisionEncoder> vision, const DecoderConfig& decoder,
    const std::string& prefix, const std::string& head, Weights& weights, at::Device device) {
  return std::make_unique<VisionLanguageModel>(std::move(spec), std::move(vision), decoder, prefix,
                                               head, weights, device);
}

}  // namespace valora::models
