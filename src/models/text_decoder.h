// The decoder of a model that is made of several, by the "model_type" of its text_config.
#pragma once

#include <vector>

#include "models/decoder_config.h"

namespace valora::models {

// types: those that the family takes; the first is that of a configuration that names none. Throws
// LoadError, which lists them, for others.
DecoderConfig read_text_decoder(const ConfigReader& text, const ConfigReader& top,
                                const std::vector<const char*>& types);

}  // namespace valora::models
