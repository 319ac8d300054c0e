// The model of every family: a decoder, and a vision encoder if it sees.
#pragma once

#include <memory>
#include <string>

#include "models/decoder/decoder.h"
#include "models/model.h"
#include "models/spec/positions.h"
#include "models/towers/encoding.h"

namespace valora::models {

// Text-only models, which have a decoder alone.
ModelSpec causal_lm_spec(const DecoderConfig& config, const std::string& architecture);
std::unique_ptr<Model> make_causal_lm(const DecoderConfig& config, const std::string& architecture,
                                      Weights& weights, at::Device device);
// As above, with a spec that has more than causal_lm_spec() sets.
std::unique_ptr<Model> make_causal_lm(const DecoderConfig& config, ModelSpec spec, Weights& weights,
                                      at::Device device);
Positions causal_lm_positions(const ModelSpec& spec, int tokens,
                              std::span<const VisualSpan> visual);

// vision: null for a text-only model. prefix: of the decoder's tensors, ending in a dot; head: of
// the output layer's. Throws LoadError.
std::unique_ptr<Model> make_vision_language_model(
    ModelSpec spec, std::unique_ptr<VisionEncoder> vision, const DecoderConfig& decoder,
    const std::string& prefix, const std::string& head, Weights& weights, at::Device device);

}  // namespace valora::models
