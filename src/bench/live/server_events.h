// Requests and answers of a workload in OpenAI's form.
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

// A streamed completion of token ids, or a streamed chat. base: the server's name of the model
// itself. kInvalidArgument if the request cannot be written in this form.
Result<Question> question_of(const GenerateRequest& request, const std::string& base);

struct AnswerEvent {
  OutputChunk chunk;  // its token ids, or its text, or both; empty if the event has neither
  bool last = false;  // the end of the stream
};

// kUnavailable: the event is an error, or not an event of an answer; or it has text without the ids
// of its tokens.
Result<AnswerEvent> read_event(std::string_view data);

// What a response says that is no answer.
Error refusal_error(int status, std::string_view body);

}  // namespace valora::bench
