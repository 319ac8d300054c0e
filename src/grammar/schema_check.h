// Refuses JSON schemas that would be applied in part, or whose grammar would be too large.
#pragma once

#include <string>

#include "base/result.h"

namespace valora::grammar {

inline constexpr size_t kMaxSchemaBytes = 128 << 10;

// strict: JsonSchemaSpec::strict.
Status check_schema(const std::string& schema, bool strict);

}  // namespace valora::grammar
