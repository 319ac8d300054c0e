// Mistral (transformers: modeling_mistral.py), text only.
#pragma once

#include "models/decoder_config.h"
#include "models/registry.h"

namespace valora::models {

// Missing keys get the defaults of MistralConfig. Throws LoadError.
DecoderConfig read_mistral_config(const ConfigReader& config);
Family mistral_family();

}  // namespace valora::models
