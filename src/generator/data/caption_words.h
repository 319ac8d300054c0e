// A caption's words, as the caption metrics count them. Torch-free.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace valora::generator {

// In lower case, without punctuation; apostrophes and hyphens within words and points within
// numbers stay. On captions of plain words it is what the published evaluation's tokenizer gives;
// that one also parts "don't" into "do" and "n't".
std::vector<std::string> caption_words(std::string_view caption);

}  // namespace valora::generator
