// Qwen3 (transformers: modeling_qwen3.py), text only.
#pragma once

#include "models/decoder/decoder_config.h"
#include "models/registry.h"

namespace valora::models {

// Reads a Qwen3 decoder from `text` (config.json or its text_config). Missing keys get the defaults
// of Qwen3Config; the sizes are required. Throws LoadError.
DecoderConfig read_qwen3_config(const ConfigReader& text, const ConfigReader& top);
Family qwen3_family();

}  // namespace valora::models
