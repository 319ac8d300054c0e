// Parses the fields that demand a form of the answer: OpenAI's "response_format", and vLLM's
// "structured_outputs" with its older spellings.
#pragma once

#include <optional>
#include <string_view>

#include "api/constraint.h"
#include "base/json.h"
#include "base/json_spacing.h"
#include "base/result.h"

namespace valora::server {

// body: parsed from `text`, which is read again for the order of a schema's properties. None if the
// fields are absent or ask for plain text. kInvalidArgument also if they demand two forms.
Result<std::optional<AnswerConstraint>> parse_constraint(const Json& body, std::string_view text);

// The white space that "structured_outputs" asks for in answers that are JSON, whichever field
// demands them. None if it does not say.
Result<std::optional<JsonSpacing>> parse_json_whitespace(const Json& body);

}  // namespace valora::server
