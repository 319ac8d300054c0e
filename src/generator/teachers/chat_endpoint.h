// An OpenAI-compatible chat endpoint, asked one question at a time on the calling thread.
// Torch-free.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace valora::generator {

struct ChatReply {
  std::string text;
  std::vector<float> logprobs;  // of its tokens, where the endpoint gives them
};

struct EndpointOptions {
  std::string url;      // with "/v1"; "/chat/completions" is added
  std::string api_key;  // empty: none is sent
  double timeout_seconds = 120;
  int retries = 5;
  double retry_seconds = 0.5;
};

// Sends `body` and reads the answer's first choice. Thread-safe. HTTP 429, 5xx and broken
// connections are tried again, after Retry-After where the endpoint names it (30 s at most). Errors
// name the URL: kUnavailable where it gave up, kUnprocessable where it refused or its answer is
// none, kCancelled once `stop` is requested.
Result<ChatReply> ask_chat(const EndpointOptions& endpoint, const Json& body, std::stop_token stop);

}  // namespace valora::generator
