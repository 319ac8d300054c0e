// JSON Schema's keywords, grouped by the kind of their values, and where they hold subschemas.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"

namespace valora::grammar {

using Keys = std::initializer_list<const char*>;

constexpr Keys kSchemas = {"items", "additionalProperties", "unevaluatedProperties",
                           "propertyNames"};
constexpr Keys kListsOfSchemas = {"anyOf", "oneOf", "allOf", "prefixItems"};
constexpr Keys kMapsOfSchemas = {"properties", "patternProperties", "$defs", "definitions"};

inline bool holds(Keys keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

template <typename AnyJson>
bool is_of_type(const AnyJson& value, std::string_view type) {
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "array") return value.is_array();
  return type == "object" && value.is_object();
}

// A parsed "$ref" that begins with #: the parts of its JSON pointer, and whether any of them was
// escaped. Absent if malformed.
struct SchemaPointer {
  std::vector<std::string> parts;
  bool escaped = false;
};
std::optional<SchemaPointer> schema_pointer(std::string_view ref);

// The value that the pointer refers to; null if there is none.
template <typename AnyJson>
const AnyJson* find(const AnyJson& root, const SchemaPointer& pointer) {
  const AnyJson* at = &root;
  for (const std::string& part : pointer.parts) {
    if (at->is_object()) {
      const auto it = at->find(part);
      if (it == at->end()) return nullptr;
      at = &*it;
    } else {
      const bool index = at->is_array() && !part.empty() && part.size() < 9 &&
                         part.find_first_not_of("0123456789") == std::string::npos;
      if (!index || std::stoul(part) >= at->size()) return nullptr;
      at = &(*at)[std::stoul(part)];
    }
  }
  return at;
}

}  // namespace valora::grammar
