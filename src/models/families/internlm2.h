// InternLM2, the decoder of older InternVL models (modeling_internlm2.py in their folders' remote
// code): Llama with one linear for queries, keys and values.
#pragma once

#include "models/decoder/decoder_config.h"

namespace valora::models {

// text: the decoder's part of config.json; top: the whole. Throws LoadError.
DecoderConfig read_internlm2_config(const ConfigReader& text, const ConfigReader& top);

}  // namespace valora::models
