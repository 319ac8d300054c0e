// Llama 2 and 3, text (transformers: modeling_llama.py).
#pragma once

#include "models/decoder.h"
#include "models/registry.h"

namespace valora::models {

inline constexpr int32_t kLlamaEos = 2;  // LlamaConfig's default

// A Llama decoder of `text` (config.json or its text_config), what it leaves out as LlamaConfig has
// it.
DecoderConfig read_llama_config(const ConfigReader& text, const ConfigReader& top);
Family llama_family();

}  // namespace valora::models
