// From what clients describe to what xgrammar takes.
#pragma once

#include "base/result.h"
#include "grammar/spec.h"

namespace valora::grammar {

// Rewrites a description that check() accepts. Schemas become those of rewritten_schema(), with its
// errors; schemas in a structural tag state their spacing.
Result<GrammarSpec> rewritten(const GrammarSpec& spec);

}  // namespace valora::grammar
