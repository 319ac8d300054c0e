// Qwen2 (transformers: modeling_qwen2.py), text only.
#pragma once

#include "models/decoder/decoder_config.h"
#include "models/registry.h"

namespace valora::models {

// Reads a Qwen2 decoder from `text` (config.json or its text_config). Throws LoadError; the sizes
// are required.
DecoderConfig read_qwen2_config(const ConfigReader& text, const ConfigReader& top);
Family qwen2_family();

}  // namespace valora::models
