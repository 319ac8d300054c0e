// Tokens that an adapter's folder adds to the base model's.
#pragma once

#include "adapters/adapter_spec.h"
#include "base/result.h"
#include "text/tokenizer.h"

namespace valora {

// An adapter that changes embeddings or the output layer may have been trained with tokens that its
// own tokenizer has and the base model's lacks: its prompts would be cut into other tokens.
// kUnprocessable naming the first such token of FOLDER/tokenizer.json or, without that, of
// added_tokens.json, or for a file that cannot be read. Other adapters' tokenizers are not read.
Status check_added_tokens(const adapters::AdapterSpec& spec, const text::Tokenizer& base);

}  // namespace valora
