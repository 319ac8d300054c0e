// Tokens that a tokenizer has but the model has no embedding for.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "text/tokenizer.h"

namespace valora::serving {

// kInvalidArgument, naming the request's field, for the first token beyond the model's `vocab`
// embeddings. placeholders: tokens that media replace.
Status check_tokens(std::span<const int32_t> tokens, const text::Tokenizer& tokenizer,
                    int64_t vocab, const char* field, std::span<const int32_t> placeholders = {});
// Fine-tunes often add tokens without resizing the embedding: only a warning, because only prompts
// with such a token fail. kUnprocessable if the tokenizer adds one to every prompt. folder: for
// messages.
Status check_vocabulary(const text::Tokenizer& tokenizer, int64_t vocab, const std::string& folder);

}  // namespace valora::serving
