// What an answer must look like, and the limits of such descriptions.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/digest.h"
#include "base/json_spacing.h"
#include "base/result.h"

namespace valora::grammar {

struct JsonObjectSpec {  // any JSON object
  JsonSpacing spacing = JsonSpacing::kBounded;
};
struct JsonSchemaSpec {
  std::string schema;  // JSON
  // Objects have no properties, and arrays no items, that the schema does not mention.
  bool strict = true;
  JsonSpacing spacing = JsonSpacing::kBounded;
};
struct RegexSpec {
  std::string pattern;  // matches the whole answer
};
struct ChoiceSpec {
  std::vector<std::string> choices;
};
struct EbnfSpec {
  std::string text;  // in the GBNF notation; the first rule is "root"
};
struct StructuralTagSpec {
  std::string json;
  // Applies to the JSON schemas without "max_whitespace_cnt"; kCompact applies to all.
  JsonSpacing spacing = JsonSpacing::kBounded;
};

using GrammarSpec = std::variant<JsonObjectSpec, JsonSchemaSpec, RegexSpec, ChoiceSpec, EbnfSpec,
                                 StructuralTagSpec>;

// kInvalidArgument if a description is not well-formed, exceeds the limits, or asks for what no
// grammar here expresses. The message names the place, of a schema as a JSON pointer.
Status check(const GrammarSpec& spec);

Digest digest_of(const GrammarSpec& spec);

}  // namespace valora::grammar
