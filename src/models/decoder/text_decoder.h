// The decoder of a composite model, chosen by the "model_type" of its text_config.
#pragma once

#include <vector>

#include "models/decoder/decoder_config.h"

namespace valora::models {

// types: those the family supports; the first is the default if the configuration names none. For
// any other type, throws a LoadError that lists them.
DecoderConfig read_text_decoder(const ConfigReader& text, const ConfigReader& top,
                                const std::vector<const char*>& types);

}  // namespace valora::models
