// Normalises answers as the VQA challenge does (Antol et al. 2015, the evaluation published with
// the data set).
#pragma once

#include <string>
#include <string_view>

namespace valora::generator {

// Removes punctuation or replaces it with white space, converts to lower case and number words to
// digits, removes articles, and restores apostrophes in contractions. ASCII rules; other characters
// are kept.
std::string normalised_vqa_answer(std::string_view answer);

}  // namespace valora::generator
