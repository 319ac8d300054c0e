// JSON from files and clients: parsed under limits; errors name the field.
//
// Include this header instead of the library's: it makes destroying trees, and comparing them with
// literals, free of allocations.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

// To avoid overflowing the stack on deep trees, the library moves all values of a tree into one
// vector before it destroys them. That vector allocates, and an exception in a destructor ends the
// process: a client could end it with a body whose parsing runs out of memory. Here depth is
// bounded (JsonLimits), so values are destroyed in place, for both object types.
namespace nlohmann {
template <>
inline void json::json_value::destroy(value_t type) {  // NOLINT(misc-no-recursion): bounded depth
  switch (type) {
    case value_t::object: delete object; break;
    case value_t::array: delete array; break;
    case value_t::string: delete string; break;
    case value_t::binary: delete binary; break;
    default: break;
  }
}
template <>
inline void ordered_json::json_value::destroy(
    value_t type) {  // NOLINT(misc-no-recursion): as above
  switch (type) {
    case value_t::object: delete object; break;
    case value_t::array: delete array; break;
    case value_t::string: delete string; break;
    case value_t::binary: delete binary; break;
    default: break;
  }
}

// The library's operator constructs a value from the literal, which may allocate, although it is
// noexcept.
inline bool operator==(const json& value, const char* literal) noexcept {
  return value.is_string() && value.get_ref<const json::string_t&>() == literal;
}
inline bool operator==(const ordered_json& value, const char* literal) noexcept {
  return value.is_string() && value.get_ref<const ordered_json::string_t&>() == literal;
}
}  // namespace nlohmann

namespace valora {

using Json = nlohmann::json;
// Keeps the order of keys in the text.
using OrderedJson = nlohmann::ordered_json;

struct JsonLimits {
  size_t max_bytes = size_t{64} << 20;
  int max_depth = 64;
  // A parsed value takes tens of bytes even if its text is short.
  size_t max_values = size_t{4} << 20;
  // Refuse objects with duplicate keys instead of keeping the last value.
  bool unique_keys = false;
};

// Refuses text over the limits before a tree is built. `what` names the source in error messages.
Result<Json> parse_json(std::string_view text, std::string_view what, JsonLimits limits = {});
Result<Json> read_json_file(const std::string& path, JsonLimits limits = {});

// The library's message without its error number and without the offending text, which may be long
// and invalid UTF-8.
std::string reason_of(const Json::exception& e);

// nullopt unless the value is an integer that fits 64 bits.
std::optional<int64_t> as_integer(const Json& value);

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
