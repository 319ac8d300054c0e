// Reads request fields and checks their ranges, on top of base/json. Errors are kInvalidArgument
// with the field in `param`.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"

namespace valora::server {

struct Range {
  double low;
  double high;
  bool low_excluded = false;
};

Result<std::optional<double>> number_in(const Json& body, std::string_view key, Range range);
Result<std::optional<int>> integer_in(const Json& body, std::string_view key, int low, int high);
Result<bool> flag(const Json& body, std::string_view key, bool fallback);

// The value of a key; a JSON null if absent.
const Json& member(const Json& body, std::string_view key);
// True for absent, null, false, "", [] and {}: clients send these for unused fields.
bool unused(const Json& body, std::string_view key);

// A list of 32-bit integers at `path`.
Result<std::vector<int32_t>> integers(const Json& list, const std::string& path);
// A string, a list of strings, or absent (returns an empty list).
Result<std::vector<std::string>> string_or_strings(const Json& body, std::string_view key);

// Parses a body, which must be a JSON object. Limits its depth and its number of values.
Result<Json> parse_body(std::string_view text);

// Integers that templates write into prompts. A parsed tree holds those beyond 64 bits as rounded
// floats, which would be other numbers.
// kInvalidArgument, with `param`, if the JSON text has an integer below -2^63 or above 2^64 - 1.
Status check_integers(std::string_view text, const std::string& param);
// The same in these fields of a body, an object; param is the field.
Status check_integers_of(std::string_view body, std::initializer_list<std::string_view> fields);

}  // namespace valora::server
