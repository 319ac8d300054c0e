// Reading request fields within ranges, on top of base/json. Every error names the field in its
// param.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
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

// The value under a key; null when absent.
const Json& member(const Json& body, std::string_view key);
// Absent, null, false, "", [] and {}: what clients send for "not used".
bool unused(const Json& body, std::string_view key);

// A list of 32-bit integers at `path`.
Result<std::vector<int32_t>> integers(const Json& list, const std::string& path);
// A string, or a list of them, or absent.
Result<std::vector<std::string>> string_or_strings(const Json& body, std::string_view key);

// A body that is a JSON object, within limits on depth and on the number of values.
Result<Json> parse_body(std::string_view text);

}  // namespace valora::server
