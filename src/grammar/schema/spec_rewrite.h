// Converts clients' descriptions to what xgrammar accepts.
#pragma once

#include "base/result.h"
#include "grammar/spec.h"

namespace valora::grammar {

// Rewrites a description that passed check(). Schemas go through rewritten_schema(), with its
// errors; schemas in a structural tag state their spacing.
Result<GrammarSpec> rewritten(const GrammarSpec& spec);

}  // namespace valora::grammar
