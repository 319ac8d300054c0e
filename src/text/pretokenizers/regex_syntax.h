// Translates Oniguruma's regular expressions, used by `tokenizers`, to PCRE2.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace valora::text {

// The equivalent PCRE2 pattern (for UTF and UCP). Supports the syntax found in pre-tokenizers:
// literals, classes, groups, look-around, quantifiers, \s \S \d, general categories \p{…}, and
// (?i:…) around ASCII letters. Constructs that the two engines read differently are refused by
// name.
Result<std::string> translate_regex(std::string_view pattern);
// A PCRE2 pattern that matches the text literally.
std::string literal_regex(std::string_view text);

}  // namespace valora::text
