// Rewrites clients' JSON schemas into schemas that xgrammar accepts.
#pragma once

#include <string>

#include "base/result.h"

namespace valora::grammar {

// schema: must have passed check_schema(). Unchanged unless it contains
// - "oneOf", which becomes "anyOf" if its cases certainly exclude each other. Object cases that
//   do so by the listed values of a property are made to require that property;
// - "$ref" with escapes, through arrays, or to places that no keyword marks as schemas: their
//   targets
//   are copied to "$defs".
// kInvalidArgument, with the location, if cases of a "oneOf" may not exclude each other, or if the
// copies exceed a limit.
Result<std::string> rewritten_schema(const std::string& schema, bool strict);

}  // namespace valora::grammar
