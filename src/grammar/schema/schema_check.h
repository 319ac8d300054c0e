// Rejects JSON schemas that xgrammar would apply only in part, or whose grammar would be too large.
#pragma once

#include <string>

#include "base/result.h"

namespace valora::grammar {

inline constexpr size_t kMaxSchemaBytes = 128 << 10;

// strict: as JsonSchemaSpec::strict.
Status check_schema(const std::string& schema, bool strict);

}  // namespace valora::grammar
