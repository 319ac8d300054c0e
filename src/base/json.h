// JSON from files and clients: parsed under limits; errors name the field.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace valora {

using Json = nlohmann::json;

struct JsonLimits {
  size_t max_bytes = size_t{64} << 20;
  int max_depth = 64;
  // A parsed value takes tens of bytes, even if its text is short.
  size_t max_values = size_t{4} << 20;
  // Refuse objects that have a key twice, instead of taking its last value.
  bool unique_keys = false;
};

// Refuses text over the limits before a tree is built. `what` names the source in error messages.
Result<Json> parse_json(std::string_view text, std::string_view what, JsonLimits limits = {});
Result<Json> read_json_file(const std::string& path, JsonLimits limits = {});

// The library's reason without its error number and without the offending text, which may be long
// and not UTF-8.
std::string reason_of(const Json::exception& e);

// Readers of fields. Absent or null gives the fallback. A wrong type, or a number outside T's
// range, is an error whose param is the key.
template <typename T>
Result<std::optional<T>> optional_field(const Json& object, std::string_view key);
template <typename T>
Result<T> field_or(const Json& object, std::string_view key, T fallback) {
  VALORA_TRY(value, optional_field<T>(object, key));
  return value ? std::move(*value) : std::move(fallback);
}
template <typename T>
Result<T> required_field(const Json& object, std::string_view key) {
  VALORA_TRY(value, optional_field<T>(object, key));
  if (!value) return invalid("\"" + std::string(key) + "\" is missing", std::string(key));
  return std::move(*value);
}

extern template Result<std::optional<bool>> optional_field(const Json&, std::string_view);
extern template Result<std::optional<int32_t>> optional_field(const Json&, std::string_view);
extern template Result<std::optional<int64_t>> optional_field(const Json&, std::string_view);
extern template Result<std::optional<double>> optional_field(const Json&, std::string_view);
extern template Result<std::optional<std::string>> optional_field(const Json&, std::string_view);

}  // namespace valora
