#include "models/vision_language_model.h"

#include <utility>

namespace valora::models {
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
