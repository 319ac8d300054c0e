// Checks of schemas and other descriptions that clients send.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace valora::grammar {

inline constexpr size_t kMaxSchemaBytes = 128 << 10;

// Rejects JSON schemas that xgrammar would apply only in part, or whose grammar would be too large.
// strict: as JsonSchemaSpec::strict.
Status check_schema(const std::string& schema, bool strict);

// Limits on regular expressions and EBNF texts, checked by a scan that does not parse them fully.
inline constexpr size_t kMaxRegexBytes = 8 << 10;
inline constexpr size_t kMaxEbnfBytes = 32 << 10;
inline constexpr int kMaxNesting = 64;            // of groups
inline constexpr int64_t kMaxRepetition = 10000;  // of one {…}, and of the product of nested ones

// Checks UTF-8, size, nesting and repetitions. `what` begins the error message.
Status check_regex(std::string_view pattern, const std::string& what);
Status check_ebnf(std::string_view text);

// What makes the answers of a JSON schema long: the keyword that demands the largest number of
// characters, items or properties, and its place: "minLength" at #/properties/a. Empty if there is
// none. For errors.
std::string largest_minimum(const std::string& schema);

}  // namespace valora::grammar
