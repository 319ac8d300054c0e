// The form that a request requires of its answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace valora {

struct AnswerConstraint {
  enum class Kind : uint8_t {
    kJsonObject,     // any JSON object
    kJsonSchema,     // `text` is the schema
    kRegex,          // `text` matches the whole answer
    kChoice,         // one of `choices`
    kEbnf,           // `text` is a grammar; its first rule is "root"
    kStructuralTag,  // `text` is a JSON description
    kLabels,         // JSON with a label of the adapter's task (AnswerForm)
    kBoxes,          // a JSON list of boxes in pixels of the prompt's only picture; their labels
                     // are among `choices`, if there are any
  };
  Kind kind = Kind::kJsonObject;
  std::string text;
  std::vector<std::string> choices;
  bool strict = true;  // kJsonSchema: allow nothing that the schema does not mention
  std::string param;   // request field named in errors
  // A weaker description of the same kind, used if no grammar can express `text`; empty: none.
  std::string fallback = {};
};

}  // namespace valora
