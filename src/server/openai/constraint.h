// Parses the fields that constrain the form of the answer: OpenAI's "response_format", and vLLM's
// "structured_outputs" with its older spellings.
#pragma once

#include <optional>
#include <string_view>

#include "api/constraint.h"
#include "base/json/json.h"
#include "base/json/json_spacing.h"
#include "base/result.h"

namespace valora::server {

// body: parsed from `text`, which is read again for the order of a schema's properties. Returns
// nullopt if the fields are absent or ask for plain text. Returns kInvalidArgument also if they ask
// for two forms.
Result<std::optional<AnswerConstraint>> parse_constraint(const Json& body, std::string_view text);

// The white space that "structured_outputs" allows in JSON answers, whichever field asks for JSON.
// Returns nullopt if it is not specified.
Result<std::optional<JsonSpacing>> parse_json_whitespace(const Json& body);

}  // namespace valora::server
