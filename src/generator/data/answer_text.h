// Normalises answers and references for the metrics. Torch-free.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/data/metrics/metrics.h"

namespace valora::generator {

std::string_view trimmed(std::string_view text);  // without surrounding ASCII white space
std::string lower_case(std::string_view text);    // ASCII letters only
std::string folded(std::string_view text);        // trimmed, in lower case

// The answer: the text, or a head's labels as written in chat completions ("cat, dog").
std::string answer_of(const Prediction& prediction);
// The accepted answers: the references, or the answer if there are none. May be empty.
std::vector<std::string> references_of(const Sample& sample);

// Splits a caption into words for the caption metrics. Lower case, without punctuation. Apostrophes
// and hyphens within words and points within numbers are kept. On captions of plain words this
// equals the published evaluation's tokenizer, except that the latter splits "don't" into "do" and
// "n't".
std::vector<std::string> caption_words(std::string_view caption);

// Normalises answers as the VQA challenge does (Antol et al. 2015, the evaluation published with
// the data set).
// Removes punctuation or replaces it with white space, converts to lower case and number words to
// digits, removes articles, and restores apostrophes in contractions. ASCII rules; other characters
// are kept.
std::string normalised_vqa_answer(std::string_view answer);

}  // namespace valora::generator
