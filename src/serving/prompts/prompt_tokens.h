// Tokens that a tokenizer knows and the model has no embedding of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "text/tokenizer.h"

namespace valora::serving {

// kInvalidArgument names the first token that the model, with embeddings of `vocab` tokens, cannot
// read, and the field of the request. placeholder: a token that other ones replace.
Status check_tokens(std::span<const int32_t> tokens, const text::Tokenizer& tokenizer,
                    int64_t vocab, const char* field, std::optional<int32_t> placeholder = {});
// Fine-tunes often add tokens and never resize the embedding: a warning, because only a prompt that
// holds one fails. kUnprocessable if the tokens that it puts around every prompt are such.
// folder: for messages.
Status check_vocabulary(const text::Tokenizer& tokenizer, int64_t vocab, const std::string& folder);

}  // namespace valora::serving
