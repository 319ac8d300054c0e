// Gemma 3 (transformers: modeling_gemma3.py), with and without pictures.
#pragma once

#include "models/decoder/decoder_config.h"
#include "models/registry.h"

namespace valora::models {

// Reads a Gemma 3 decoder from `text` (config.json or its text_config). Missing keys get the
// defaults of Gemma3TextConfig. Throws LoadError.
DecoderConfig read_gemma3_config(const ConfigReader& text, const ConfigReader& top);

inline constexpr int32_t kGemmaEos = 1;

Family gemma3_text_family();
Family gemma3_family();

}  // namespace valora::models
