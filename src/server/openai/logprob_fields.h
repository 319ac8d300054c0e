// Parses the fields of chats and completions that ask for log probabilities of the answer's tokens
// and of the prompt's.
#pragma once

#include "base/json/json.h"
#include "server/openai/requests.h"

namespace valora::server {

Status parse_chat_logprobs(const Json& body, const RequestLimits& limits, GenerationBody& out);
// Includes those of the prompt if it is echoed.
Status parse_completion_logprobs(const Json& body, const RequestLimits& limits,
                                 GenerationBody& out);

}  // namespace valora::server
