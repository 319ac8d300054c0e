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

struct EngineAnswer {
  std::string text;
  std::vector<float> logprobs;  // per token, if the request asked for them
  std::optional<Classification> classification;
  Usage usage;
  double seconds = 0;  // arrival to end
};

struct EngineRequests {
  int count = 0;
  int concurrency = 64;  // in the engine at once
  // Called only when the request is due, since a video's frames may be many bytes.
  std::function<Result<GenerateRequest>(int)> make;
  std::function<std::string(int)> name;               // of a request, for errors
  std::function<void(int done, int total)> progress;  // called on the caller's thread
  std::stop_token stop;
};

// The answers in the requests' order. The first failing request ends the call with an error that
// names it, and a requested stop with kCancelled; requests in flight are cancelled. When this
// returns, the engine has released every sink.
Result<std::vector<EngineAnswer>> ask_all(Engine& engine, const EngineRequests& requests);

}  // namespace valora::generator
