// Numbers spelled out in English, as in SmolVLM's prompts: "one hundred and twenty-one".
#pragma once

#include <string>

namespace valora::models {

// number: 0 … 999,999
std::string number_words(int number);

}  // namespace valora::models
