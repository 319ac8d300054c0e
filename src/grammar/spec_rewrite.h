// From what clients describe to what xgrammar takes.
#pragma once

#include "base/result.h"
#include "grammar/spec.h"

namespace valora::grammar {

// Of a description that check() accepts. Schemas are as rewritten_schema() makes them, with its
// errors; those in a structural tag say how they are spaced.
Result<GrammarSpec> rewritten(const GrammarSpec& spec);

}  // namespace valora::grammar
