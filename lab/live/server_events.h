// Converts a workload's requests and answers to and from OpenAI's format.
#pragma once

#include <string>
#include <string_view>

#include "api/answer.h"
#include "api/request.h"
#include "base/result.h"

namespace valora::bench {

struct Question {
  std::string path;
  std::string body;  // JSON
};

// A streamed completion of token ids, or a streamed chat. base: the server's name for the base
// model. kInvalidArgument if the request cannot be expressed.
Result<Question> question_of(const GenerateRequest& request, const std::string& base);

struct AnswerEvent {
  OutputChunk chunk;  // token ids, text, or both; empty if the event has neither
  bool last = false;  // end of the stream
};

// kUnavailable: the event is an error or unknown, or it has text without token ids.
Result<AnswerEvent> read_event(std::string_view data);

// The error for a response that is not an answer.
Error refusal_error(int status, std::string_view body);

}  // namespace valora::bench
