#include "text/json_fields.h"

#include <algorithm>

#include "base/text/unicode.h"

namespace valora::text {

Status check_fields(const Json& object, std::string_view where,
                    std::initializer_list<std::string_view> known) {
  if (!object.is_object()) return refuse(where, "must be an object");
  for (const auto& [key, value] : object.items())
    if (std::ranges::find(known, key) == known.end())
      return refuse(where, "unknown field " + in_quotes(key));
  return {};
}

Result<std::string> part_type(const Json& part, std::string_view where) {
  if (!part.is_object()) return refuse(where, "must be an object or null");
  return field<std::string>(part, where, "type");
}

Result<std::string> character_field(const Json& object, std::string_view where,
                                    std::string_view key) {
  VALORA_TRY(text, field<std::string>(object, where, key));
  if (text.empty() || decode_utf8(text).length != text.size())
    return refuse(where, in_quotes(key) + " must be one character");
  return text;
}

Result<const Json*> array_field(const Json& object, std::string_view where, std::string_view key,
                                size_t max_size) {
  const auto it = object.find(std::string(key));
  if (it == object.end() || !it->is_array())
    return refuse(where, in_quotes(key) + " must be an array");
  if (it->size() > max_size)
    return refuse(where,
                  in_quotes(key) + " has more than " + std::to_string(max_size) + " elements");
  return &*it;
}

}  // namespace valora::text
