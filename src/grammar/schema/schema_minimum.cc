#include "grammar/schema/schema_check.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/json/json.h"
#include "base/text/strings.h"
#include "grammar/schema/schema_words.h"

namespace valora::grammar {
namespace {

constexpr Keys kMinimums = {"minLength", "minItems", "minProperties"};

struct Minimum {
  int64_t count = 0;
  std::string text;
};

// Looks everywhere: a name of a property that equals a keyword has a schema, not a number.
void find_in(const Json& value, const std::string& place, Minimum& largest) {
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i)
      find_in(value[i], fmt::format("{}/{}", place, i), largest);
  if (!value.is_object()) return;
  for (const auto& [key, inner] : value.items()) {
    if (holds(kMinimums, key) && inner.is_number_integer() && inner > Json(largest.count))
      largest = {inner.get<int64_t>(), fmt::format("\"{}\" at {}", key, shortened(place, 200))};
    find_in(inner, place + "/" + shortened(key, 60), largest);
  }
}

}  // namespace

std::string largest_minimum(const std::string& schema) {
  const auto parsed = parse_json(schema, "the schema", {.max_depth = 64});
  Minimum largest;
  if (parsed.ok()) find_in(*parsed, "#", largest);
  return largest.text;
}

}  // namespace valora::grammar
