// Texts that an answer must not contain, as token sequences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace valora::serving {

// Each text as tokenized at the beginning of an answer and after a space (as in vLLM's bad_words).
// Other tokenizations of the same text are not detected.
std::vector<std::vector<int32_t>> tokens_of(const std::vector<std::string>& words,
                                            const text::Tokenizer& tokenizer);

}  // namespace valora::serving
