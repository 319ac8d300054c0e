// A client of an OpenAI-compatible chat endpoint: one question at a time on the calling thread.
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
  std::vector<float> logprobs;  // per token, if the endpoint returns them
};

struct EndpointOptions {
  std::string url;      // with "/v1"; "/chat/completions" is added
  std::string api_key;  // empty: none is sent
  double timeout_seconds = 120;
  int retries = 5;
  double retry_seconds = 0.5;
};

// Sends `body` and returns the answer's first choice. Thread-safe. HTTP 429, 5xx and broken
// connections are retried, after Retry-After if the endpoint sends it (at most 30 s). Errors name
// the URL: kUnavailable after the last retry, kUnprocessable if the endpoint refused or its answer
// is malformed, kCancelled after a request of `stop`.
Result<ChatReply> ask_chat(const EndpointOptions& endpoint, const Json& body,
                           const std::stop_token& stop);

}  // namespace valora::generator
