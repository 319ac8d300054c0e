// Mistral (transformers: modeling_mistral.py), text only.
#pragma once

#include "models/decoder/decoder_config.h"
#include "models/registry.h"

namespace valora::models {

// Reads a Mistral decoder from `text` (config.json or its text_config). Missing keys get the
// defaults of MistralConfig. Throws LoadError.
DecoderConfig read_mistral_config(const ConfigReader& text, const ConfigReader& top);
// The published chat format that matches the tokenizer's vocabulary. image: the text of the image
// placeholder.
std::unique_ptr<text::ChatFormat> mistral_chat(const text::Tokenizer& tokenizer,
                                               const std::string& image);
Family mistral_family();

}  // namespace valora::models
