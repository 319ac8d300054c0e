// Pre-tokenizer "Digits": separates numeric characters, individually or in runs.
#pragma once

#include "text/pretokenizers/pretokenizer.h"

namespace valora::text {

Result<std::unique_ptr<const PreTokenizer>> make_digits(const Json& json, const std::string& where);

}  // namespace valora::text
