// InternLM2, the decoder of older InternVL models (modeling_internlm2.py in the code that their
// folders bring along): Llama's, with queries, keys and values of one linear.
#pragma once

#include "models/decoder_config.h"

namespace valora::models {

// Of a part of config.json; top: config.json. Throws LoadError.
DecoderConfig read_internlm2_config(const ConfigReader& text, const ConfigReader& top);

}  // namespace valora::models
