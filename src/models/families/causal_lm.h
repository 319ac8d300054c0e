// A text-only model: a decoder without a vision tower.
#pragma once

#include <memory>
#include <string>

#include "models/decoder/decoder.h"
#include "models/model.h"
#include "models/spec/positions.h"

namespace valora::models {

ModelSpec causal_lm_spec(const DecoderConfig& config, const std::string& architecture);
std::unique_ptr<Model> make_causal_lm(const DecoderConfig& config, const std::string& architecture,
                                      Weights& weights, at::Device device);
// As above, with a spec that has more than causal_lm_spec() sets.
std::unique_ptr<Model> make_causal_lm(const DecoderConfig& config, ModelSpec spec, Weights& weights,
                                      at::Device device);
Positions causal_lm_positions(const ModelSpec& spec, int tokens,
                              std::span<const VisualSpan> visual);

}  // namespace valora::models
