// Sends many requests through the serving engine from one thread, which waits for all answers.
// Torch-free.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "api/engine.h"

namespace valora::generator {

// The probability from which a label of a multi-label head is answered.
inline constexpr float kLabelHolds = 0.5f;

struct EngineAnswer {
  std::string text;
  std::vector<float> logprobs;         // per token, if requested
  std::vector<float> prompt_logprobs;  // of the prompt's tokens but the first, if requested
  std::optional<Classification> classification;
  Usage usage;
  double seconds = 0;  // from arrival to end
};

struct EngineRequests {
  int count = 0;
  int concurrency = 64;  // in the engine at once
  // Called only when the request is due, because a video's frames may take much memory.
  std::function<Result<GenerateRequest>(int)> make;
  std::function<std::string(int)> name;               // of a request, used in errors
  std::function<void(int done, int total)> progress;  // called on the caller's thread
  std::stop_token stop;
};

// The answers, in the order of the requests. The first failing request ends the call with an error
// that names it; a stop ends it with kCancelled. Requests in flight are cancelled. When this
// returns, the engine has released every sink.
Result<std::vector<EngineAnswer>> ask_all(Engine& engine, const EngineRequests& requests);

}  // namespace valora::generator
