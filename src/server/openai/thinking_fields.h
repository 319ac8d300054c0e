// Parses the fields of a chat that concern the thought before its answer: "enable_thinking",
// "reasoning_effort", "thinking_token_budget", "include_reasoning" and "separate_reasoning".
#pragma once

#include "api/request.h"
#include "base/json/json.h"
#include "base/result.h"

namespace valora::server {

struct Thinking {
  ThoughtParams params;
  bool shown = true;  // the answer has the thought
};

// The prompt must already have its template variables.
Result<Thinking> parse_thinking(const Json& body, ChatPrompt& prompt);

}  // namespace valora::server
