// Llama 2 and 3, text (transformers: modeling_llama.py).
#pragma once

#include "models/decoder/decoder.h"
#include "models/registry.h"

namespace valora::models {

inline constexpr int32_t kLlamaEos = 2;  // LlamaConfig's default

// Reads a Llama decoder from `text` (config.json or its text_config). Missing keys get the defaults
// of LlamaConfig.
DecoderConfig read_llama_config(const ConfigReader& text, const ConfigReader& top);
Family llama_family();

}  // namespace valora::models
