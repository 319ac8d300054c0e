// Reads the mixtures of experts of a decoder's layers from config.json.
#pragma once

#include <cstdint>

#include "models/decoder/decoder_config.h"
#include "models/spec/config_reader.h"

namespace valora::models {

// Defaults of a family's configuration class for missing keys, and what its class decides itself.
struct MixtureDefaults {
  int64_t experts = 0, chosen = 0, width = 0;
  int64_t shared_width = 0;    // 0: the family has no shared expert
  bool always_normed = false;  // regardless of "norm_topk_prob"
  bool every_layer = false;    // regardless of "decoder_sparse_step" and "mlp_only_layers"
};

// Sets LayerConfig::mixture of the layers that have one. Throws LoadError.
void read_mixtures(const ConfigReader& text, const MixtureDefaults& defaults,
                   DecoderConfig& config);

}  // namespace valora::models
