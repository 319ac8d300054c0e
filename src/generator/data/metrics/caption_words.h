// Splits a caption into words for the caption metrics. Torch-free.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace valora::generator {

// In lower case, without punctuation. Apostrophes and hyphens within words and points within
// numbers stay. On captions of plain words this equals the published evaluation's tokenizer, but
// for "don't", which that tokenizer splits into "do" and "n't".
std::vector<std::string> caption_words(std::string_view caption);

}  // namespace valora::generator
