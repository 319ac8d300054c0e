// Helpers that read parts of tokenizer.json. Errors name the place in the file; unknown settings
// are refused.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/json/json.h"
#include "base/result.h"
#include "base/text/strings.h"

namespace valora::text {

// Quotes a name from the file for messages.
inline std::string in_quotes(std::string_view name) { return "\"" + shortened(name, 80) + "\""; }

inline Error refuse(std::string_view where, std::string_view why) {
  return unprocessable(std::string(where) + ": " + std::string(why));
}

// Refuses unknown fields by name, because they could change results.
Status check_fields(const Json& object, std::string_view where,
                    std::initializer_list<std::string_view> known);
// The "type" of a part. An error if the part is not an object or has no type.
Result<std::string> part_type(const Json& part, std::string_view where);
// Reads a string of exactly one character.
Result<std::string> character_field(const Json& object, std::string_view where,
                                    std::string_view key);
// Reads an array of at most max_size elements.
Result<const Json*> array_field(const Json& object, std::string_view where, std::string_view key,
                                size_t max_size);

template <typename T>
Result<T> field(const Json& object, std::string_view where, std::string_view key) {
  auto value = required_field<T>(object, key);
  if (!value.ok()) return refuse(where, value.error().message);
  return value;
}

template <typename T>
Result<T> field_or(const Json& object, std::string_view where, std::string_view key, T fallback) {
  auto value = valora::field_or<T>(object, key, std::move(fallback));
  if (!value.ok()) return refuse(where, value.error().message);
  return value;
}

}  // namespace valora::text
