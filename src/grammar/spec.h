// Descriptions of what an answer must look like, and their limits.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/digest.h"
#include "base/json/json_spacing.h"
#include "base/result.h"

namespace valora::grammar {

struct JsonObjectSpec {  // any JSON object
  JsonSpacing spacing = JsonSpacing::kBounded;
};
struct JsonSchemaSpec {
  std::string schema;  // JSON
  // Objects have no properties, and arrays no items, beyond those in the schema.
  bool strict = true;
  JsonSpacing spacing = JsonSpacing::kBounded;
};
struct RegexSpec {
  std::string pattern;  // must match the whole answer
};
struct ChoiceSpec {
  std::vector<std::string> choices;
};
struct EbnfSpec {
  std::string text;  // GBNF notation; the first rule is "root"
};
struct StructuralTagSpec {
  std::string json;
  // Applies to JSON schemas without "max_whitespace_cnt"; kCompact applies to all.
  JsonSpacing spacing = JsonSpacing::kBounded;
};

using GrammarSpec = std::variant<JsonObjectSpec, JsonSchemaSpec, RegexSpec, ChoiceSpec, EbnfSpec,
                                 StructuralTagSpec>;

// kInvalidArgument if a description is malformed, exceeds the limits, or asks for something no
// grammar here can express. The message gives the location, as a JSON pointer within schemas.
Status check(const GrammarSpec& spec);

Digest digest_of(const GrammarSpec& spec);

// A literal in the notation of EbnfSpec: the text in quotes, with escapes.
std::string ebnf_literal(std::string_view text);

}  // namespace valora::grammar
