// A client of an OpenAI-compatible chat endpoint: one question at a time on the calling thread.
// Torch-free.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/json/json.h"
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

// Sends `body` and returns the answer's first choice. Thread-safe. Retries HTTP 429, 5xx and broken
// connections, after the endpoint's Retry-After if given (at most 30 s). Errors name the URL:
// kUnavailable after the last retry, kUnprocessable if the endpoint refuses or its answer is
// malformed, kCancelled when `stop` is requested.
Result<ChatReply> ask_chat(const EndpointOptions& endpoint, const Json& body,
                           const std::stop_token& stop);

}  // namespace valora::generator
