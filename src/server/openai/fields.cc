#include "server/openai/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/text/strings.h"

namespace valora::server {
namespace {

// Parsed values take far more memory than their text, so their number is limited as well.
constexpr size_t kMaxJsonValues = size_t{1} << 20;
constexpr int kMaxJsonDepth = 64;

}  // namespace

Result<std::optional<double>> number_in(const Json& body, std::string_view key, Range range) {
  VALORA_TRY(value, optional_field<double>(body, key));
  if (!value) return std::optional<double>{};
  const bool too_low = range.low_excluded ? *value <= range.low : *value < range.low;
  if (too_low || *value > range.high)
    return invalid(
        fmt::format("\"{}\" must be {} {} and at most {}, not {}", key,
                    range.low_excluded ? "above" : "at least", range.low, range.high, *value),
        std::string(key));
  return value;
}

Result<std::optional<int>> integer_in(const Json& body, std::string_view key, int low, int high) {
  VALORA_TRY(value, optional_field<int32_t>(body, key));
  if (value && (*value < low || *value > high))
    return invalid(
        high == INT32_MAX
            ? fmt::format("\"{}\" must be at least {}, not {}", key, low, *value)
            : fmt::format("\"{}\" must be from {} to {}, not {}", key, low, high, *value),
        std::string(key));
  return value;
}

Result<bool> flag(const Json& body, std::string_view key, bool fallback) {
  return field_or<bool>(body, key, fallback);
}

const Json& member(const Json& body, std::string_view key) {
  static const Json null;
  const auto it = body.find(key);
  return it == body.end() ? null : *it;
}

bool unused(const Json& body, std::string_view key) {
  const Json& value = member(body, key);
  return value.is_null() || value == false ||
         (value.is_string() && value.get_ref<const std::string&>().empty()) ||
         (value.is_structured() && value.empty());
}

Result<std::vector<int32_t>> integers(const Json& list, const std::string& path) {
  if (!list.is_array())
    return invalid(fmt::format("\"{}\" must be a list of integers", path), path);
  std::vector<int32_t> out;
  out.reserve(list.size());
  for (const Json& item : list) {
    if (!item.is_number_integer() || item.get<int64_t>() < INT32_MIN ||
        item.get<int64_t>() > INT32_MAX ||
        (item.is_number_unsigned() && item.get<uint64_t>() > INT32_MAX))
      return invalid(fmt::format("\"{}[{}]\" must be a 32-bit integer", path, out.size()), path);
    out.push_back(item.get<int32_t>());
  }
  return out;
}

Result<std::vector<std::string>> string_or_strings(const Json& body, std::string_view key) {
  const Json& value = member(body, key);
  std::vector<std::string> out;
  if (value.is_null()) return out;
  if (value.is_string()) {
    out.push_back(value.get<std::string>());
    return out;
  }
  if (!value.is_array())
    return invalid(fmt::format("\"{}\" must be a string or a list of strings", key),
                   std::string(key));
  for (const Json& item : value) {
    if (!item.is_string())
      return invalid(fmt::format("\"{}[{}]\" must be a string", key, out.size()), std::string(key));
    out.push_back(item.get<std::string>());
  }
  return out;
}

Result<Json> parse_body(std::string_view text) {
  JsonLimits limits;
  limits.max_bytes = SIZE_MAX;  // the HTTP server has already checked the size
  limits.max_depth = kMaxJsonDepth;
  limits.max_values = kMaxJsonValues;
  VALORA_TRY(body, parse_json(text, "the request body", limits));
  if (!body.is_object()) return invalid("the request body must be a JSON object");
  return body;
}

namespace {

constexpr std::string_view kNumber = "+-.0123456789eE";

bool fits_64_bits(std::string_view number) {
  if (number.find_first_of(".eE") != number.npos) return true;  // a float
  int64_t negative = 0;
  uint64_t positive = 0;
  const char *begin = number.data(), *end = begin + number.size();
  const auto error = number.starts_with('-') ? std::from_chars(begin, end, negative).ec
                                             : std::from_chars(begin, end, positive).ec;
  return error == std::errc();
}

// Walks over valid JSON. visit(number, field) gets each number, and the name of the outermost
// object's field that it is in.
template <typename Visit>
Status each_number(std::string_view text, Visit visit) {
  int depth = 0;
  std::string_view field, last;  // last: the string before the current position
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      const size_t begin = ++i;
      while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
      last = text.substr(begin, i - begin);
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ':' && depth == 1) {
      field = last;
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      const size_t end = std::min(text.find_first_not_of(kNumber, i), text.size());
      VALORA_CHECK(visit(text.substr(i, end - i), field));
      i = end - 1;
    }
  }
  return {};
}

Error too_large(std::string_view number, const std::string& param) {
  return invalid(fmt::format("\"{}\" has the integer {}, which does not fit in 64 bits; send it as "
                             "a string",
                             param, shortened(number, 40)),
                 param);
}

}  // namespace

Status check_integers(std::string_view text, const std::string& param) {
  return each_number(text, [&](std::string_view number, std::string_view) {
    return fits_64_bits(number) ? Status() : too_large(number, param);
  });
}

Status check_integers_of(std::string_view body, std::initializer_list<std::string_view> fields) {
  return each_number(body, [&](std::string_view number, std::string_view field) {
    if (fits_64_bits(number) || std::ranges::find(fields, field) == fields.end()) return Status();
    return Status(too_large(number, std::string(field)));
  });
}

}  // namespace valora::server
