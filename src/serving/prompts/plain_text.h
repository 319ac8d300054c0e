// Text between added tokens that must be tokenized again, because inserted text becomes part of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/chat/content_marks.h"
#include "text/tokenizer.h"

namespace valora::serving {

// Removes the text after the last added token from `tokens` and returns it.
std::string take_last_text(const text::Tokenizer& tokenizer, std::vector<int32_t>& tokens);

// Texts that came from ordinary tokens and must stay ordinary even if they spell special tokens:
// marked for Tokenizer::encode(). Errors: ContentMarks::apply().
struct PlainTexts {
  std::vector<std::string> texts;
  std::string mark;
};
Result<PlainTexts> marked_plain(std::vector<std::string> texts,
                                const text::ContentMarks& content_marks);

}  // namespace valora::serving
