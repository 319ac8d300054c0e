#include "models/families/causal_lm.h"

#include "models/vision_language_model.h"

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

}  // namespace valora::models
