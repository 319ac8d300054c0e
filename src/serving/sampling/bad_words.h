// Texts that an answer must not have, as sequences of tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace valora::serving {

// Each text as it is tokenized at the beginning of an answer and after a space (as vLLM's
// bad_words). A text that other tokens spell is not found.
std::vector<std::vector<int32_t>> tokens_of(const std::vector<std::string>& words,
                                            const text::Tokenizer& tokenizer);

}  // namespace valora::serving
