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

}  // namespace valora::generator
