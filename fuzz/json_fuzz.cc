// The JSON parser with small limits, and the field readers.
#include "base/json/json.h"

#include <algorithm>

#include "check.h"

using namespace valora;

namespace {

int depth_of(const Json& json) {
  int depth = 0;
  if (json.is_structured())
    for (const Json& child : json) depth = std::max(depth, depth_of(child));
  return depth + json.is_structured();
}

size_t values_of(const Json& json) {
  size_t values = 1;
  if (json.is_structured())
    for (const Json& child : json) values += values_of(child);
  return values;
}

void read_fields(const Json& object) {
  for (const auto& [key, value] : object.items()) {
    const auto whole = optional_field<int64_t>(object, key);
    const auto narrow = optional_field<int32_t>(object, key);
    if (narrow.ok() && *narrow) FUZZ_CHECK(whole.ok() && *whole && **whole == **narrow);
    if (whole.ok() && *whole) FUZZ_CHECK(value.is_number());
    const auto number = optional_field<double>(object, key);
    FUZZ_CHECK(!number.ok() || !*number || value.is_number());
    (void)optional_field<bool>(object, key);
    (void)optional_field<std::string>(object, key);
    (void)required_field<std::string>(object, key);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const JsonLimits limits{.max_bytes = 4096, .max_depth = 8, .max_values = 256};
  const auto json = parse_json(text, "fuzz", limits);
  const auto unique = parse_json(
      text, "fuzz", {.max_bytes = 4096, .max_depth = 8, .max_values = 256, .unique_keys = true});
  FUZZ_CHECK(json.ok() || !unique.ok());
  if (!json.ok()) {
    // Answers quote the message, so it must be valid UTF-8.
    (void)Json(json.error().message).dump();
    return 0;
  }
  FUZZ_CHECK(size <= limits.max_bytes && depth_of(*json) <= limits.max_depth &&
             values_of(*json) <= limits.max_values);
  if (unique.ok()) FUZZ_CHECK(*unique == *json);
  FUZZ_CHECK(Json::parse(json->dump()) == *json);
  if (json->is_object()) read_fields(*json);
  return 0;
}
