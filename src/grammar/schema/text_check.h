// Limits on regular expressions and EBNF texts, checked by a scan that does not parse them fully.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace valora::grammar {

inline constexpr size_t kMaxRegexBytes = 8 << 10;
inline constexpr size_t kMaxEbnfBytes = 32 << 10;
inline constexpr int kMaxNesting = 64;            // of groups
inline constexpr int64_t kMaxRepetition = 10000;  // of one {…}, and of the product of nested ones

// Checks UTF-8, size, nesting and repetitions. `what` begins the error message.
Status check_regex(std::string_view pattern, const std::string& what);
Status check_ebnf(std::string_view text);

}  // namespace valora::grammar
