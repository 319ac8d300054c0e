// From what clients describe to what xgrammar takes.
#pragma once

#include "base/json_spacing.h"
#include "base/result.h"
#include "grammar/spec.h"

namespace valora::grammar {

// Of a description that check() accepts. Schemas are as rewritten_schema() makes them, with its
// errors. spacing: of the JSON schemas in a structural tag that have no "max_whitespace_cnt";
// kCompact: of all.
Result<GrammarSpec> rewritten(const GrammarSpec& spec, JsonSpacing spacing);

}  // namespace valora::grammar
