// Text between added tokens that is tokenized again, since what is put in beside it is one text
// with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/content_marks.h"
#include "text/tokenizer.h"

namespace valora::serving {

// Takes the text at the end of `tokens`, behind the last added one, off them.
std::string take_last_text(const text::Tokenizer& tokenizer, std::vector<int32_t>& tokens);

// Texts that came from ordinary tokens stay such, whatever special tokens they spell: with the mark
// for Tokenizer::encode(). Errors: ContentMarks::apply().
struct PlainTexts {
  std::vector<std::string> texts;
  std::string mark;
};
Result<PlainTexts> marked_plain(std::vector<std::string> texts,
                                const text::ContentMarks& content_marks);

}  // namespace valora::serving
