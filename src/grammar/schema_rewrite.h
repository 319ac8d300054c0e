// Rewrites clients' JSON schemas into schemas that xgrammar accepts.
#pragma once

#include <string>

#include "base/result.h"

namespace valora::grammar {

// schema: one that check_schema() has accepted. Unchanged unless it has
// - "oneOf", which becomes "anyOf" if its cases certainly exclude each other. Cases of objects that
//   do so by the listed values of a property get it among their required ones;
// - "$ref" with escapes, through arrays, or to places that no keyword makes schemas: their targets
//   are copied to "$defs".
// kInvalidArgument, with the place, if cases of a "oneOf" may not exclude each other, or if the
// copies exceed a limit.
Result<std::string> rewritten_schema(const std::string& schema, bool strict);

}  // namespace valora::grammar
