// Rewrites what clients send into what xgrammar accepts.
#pragma once

#include <optional>
#include <string>

#include "base/json/json_spacing.h"
#include "base/result.h"
#include "grammar/spec.h"

namespace valora::grammar {

// JSON schemas. schema: must have passed check_schema(). Unchanged unless it contains
// - "oneOf", which becomes "anyOf" if its cases certainly exclude each other. Object cases that
//   do so by the listed values of a property are made to require that property;
// - "$ref" with escapes, through arrays, or to places that no keyword marks as schemas: their
//   targets
//   are copied to "$defs".
// kInvalidArgument, with the location, if cases of a "oneOf" may not exclude each other, or if the
// copies exceed a limit.
Result<std::string> rewritten_schema(const std::string& schema, bool strict);

// Rewrites a description that passed check(). Schemas go through rewritten_schema(), with its
// errors; schemas in a structural tag state their spacing.
Result<GrammarSpec> rewritten(const GrammarSpec& spec);

// Tells xgrammar which white space JSON may contain. The value for xgrammar's max_whitespace_cnt:
// either of two values above any that a client may ask for, whose meaning cmake/xgrammar.cmake
// defines; nullopt: any number of characters.
constexpr std::optional<int> whitespace_of(JsonSpacing spacing) {
  switch (spacing) {
    case JsonSpacing::kBounded: return 1000001;
    case JsonSpacing::kCompact: return 1000002;
    case JsonSpacing::kFree: break;
  }
  return {};
}

}  // namespace valora::grammar
