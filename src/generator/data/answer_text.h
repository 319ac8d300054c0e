// Answers and references as the metrics compare them. Torch-free.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/data/metrics.h"

namespace valora::generator {

std::string_view trimmed(std::string_view text);  // without ASCII white space around
std::string lower_case(std::string_view text);    // of ASCII letters; all else stays
std::string folded(std::string_view text);        // trimmed, in lower case

// What was answered: the text, or a head's labels as chat completions give them ("cat, dog").
std::string answer_of(const Prediction& prediction);
// What is right where a sample has several answers: the references, or the answer where there are
// none. May be empty.
std::vector<std::string> references_of(const Sample& sample);

}  // namespace valora::generator
