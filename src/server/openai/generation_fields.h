// The fields of chats and completions that requests.cc reads: sampling, log probabilities, and the
// form of the answer.
#pragma once

#include <optional>
#include <string_view>

#include "api/constraint.h"
#include "api/request.h"
#include "base/json/json.h"
#include "base/json/json_spacing.h"
#include "base/result.h"
#include "server/openai/requests.h"

namespace valora::server {

// The sampling fields: all but max_tokens and logprobs, whose names differ between the two
// endpoints.
Result<SamplingParams> parse_sampling(const Json& body);

// Parses the fields of chats and completions that ask for log probabilities of the answer's tokens
// and of the prompt's.
Status parse_chat_logprobs(const Json& body, const RequestLimits& limits, GenerationBody& out);
// Includes those of the prompt if it is echoed.
Status parse_completion_logprobs(const Json& body, const RequestLimits& limits,
                                 GenerationBody& out);

// kInvalidArgument if a small body would take much memory because every prompt gets its own copy of
// the sampling parameters and of the answer's form. Names the larger field.
Status check_copies(const GenerationBody& body);

// Parses the fields that constrain the form of the answer: OpenAI's "response_format", and vLLM's
// "structured_outputs" with its older spellings.
// body: parsed from `text`, which is read again for the order of a schema's properties. Returns
// nullopt if the fields are absent or ask for plain text. Returns kInvalidArgument also if they ask
// for two forms.
Result<std::optional<AnswerConstraint>> parse_constraint(const Json& body, std::string_view text);

// The white space that "structured_outputs" allows in JSON answers, whichever field asks for JSON.
// Returns nullopt if it is not specified.
Result<std::optional<JsonSpacing>> parse_json_whitespace(const Json& body);

}  // namespace valora::server
