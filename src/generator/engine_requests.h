// Many requests through the serving engine, from one thread that waits for all answers. Torch-free.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/engine.h"

namespace valora::generator {

struct EngineAnswer {
  std::string text;
  std::vector<float> logprobs;  // of its tokens, where the request asked for them
  std::optional<Classification> classification;
  Usage usage;
  double seconds = 0;  // arrival to end
};

struct EngineRequests {
  int count = 0;
  int concurrency = 64;  // in the engine at once
  std::function<Result<GenerateRequest>(int)>
      make;                              // when its turn comes: frames of a video may be many bytes
  std::function<std::string(int)> name;  // of a request, for errors
  std::function<void(int done, int total)> progress;  // on the caller's thread
};

// The answers in the requests' order. The first request that fails ends it all with an error that
// names it: those under way are cancelled. Once this returns, the engine has let go of every sink.
Result<std::vector<EngineAnswer>> ask_all(Engine& engine, const EngineRequests& requests);

}  // namespace valora::generator
