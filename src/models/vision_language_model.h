// The model of every family: a decoder, and a vision encoder if it sees.
#pragma once

#include <memory>
#include <string>

#include "models/decoder/decoder.h"
#include "models/model.h"
#include "models/towers/vision_encoder.h"

namespace valora::models {

// vision: null for a text-only model. prefix: of the decoder's tensors, ending in a dot; head: of
// the output layer's. Throws LoadError.
std::unique_ptr<Model> make_vision_language_model(
    ModelSpec spec, std::unique_ptr<VisionEncoder> vision, const DecoderConfig& decoder,
    const std::string& prefix, const std::string& head, Weights& weights, at::Device device);

}  // namespace valora::models
