// Sends the requests of a scenario to an engine in real time, as their users would: a later turn
// holds the answers that the engine gave.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/engine.h"
#include "sim/simulation.h"

namespace valora::bench {

struct LiveAnswer {
  std::optional<Error> error;  // also set if an earlier turn of the conversation failed
  RequestTimings timings;
  std::vector<int32_t> tokens;
};

struct LiveReport {
  std::vector<LiveAnswer> answers;  // in the order of the arrivals
  EngineStats stats;                // at the end
  double invalid_kv = 0;            // mean share of the KV in the pool whose adapter is absent
};

// Each arrival is sent when it is due and the turn before it has ended. arrivals: in order of time;
// token ids are taken modulo 256. adapters: the names of loaded adapters by AdapterId. Returns when
// all answers have ended. Greedy, without stop tokens.
LiveReport run_live(Engine& engine, std::span<const sim::Arrival> arrivals,
                    std::span<const std::string> adapters);

}  // namespace valora::bench
