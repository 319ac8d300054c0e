// Splits a caption into words for the caption metrics. Torch-free.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace valora::generator {

// Lower case, without punctuation. Apostrophes and hyphens within words and points within numbers
// are kept. On captions of plain words this equals the published evaluation's tokenizer, except
// that the latter splits "don't" into "do" and "n't".
std::vector<std::string> caption_words(std::string_view caption);

}  // namespace valora::generator
