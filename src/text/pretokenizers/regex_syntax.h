// Oniguruma's regular expressions, which `tokenizers` runs, rewritten for PCRE2.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace valora::text {

// The PCRE2 pattern (for UTF and UCP) that matches the same. Takes the syntax that pre-tokenizers
// use: literals, classes, groups, look-around, quantifiers, \s \S \d, general categories \p{…}, and
// (?i:…) around ASCII letters. What the two engines read differently, or might, is refused by name.
Result<std::string> translate_regex(std::string_view pattern);
// A PCRE2 pattern for the text itself.
std::string literal_regex(std::string_view text);

}  // namespace valora::text
