// Answers as the VQA challenge compares them (Antol et al. 2015, the evaluation published with the
// data set).
#pragma once

#include <string>
#include <string_view>

namespace valora::generator {

// Punctuation away or to white space, lower case, number words to digits, no articles, apostrophes
// put back into contractions. ASCII rules; other characters stay.
std::string normalised_vqa_answer(std::string_view answer);

}  // namespace valora::generator
