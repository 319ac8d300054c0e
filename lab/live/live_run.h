// Sends a scenario's requests to an engine or a server in real time, as its users would: later
// turns contain the answers given before.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/live/live_target.h"
#include "lab/sim/simulation.h"

namespace valora::bench {

struct LiveAnswer {
  std::optional<Error> error;  // also set if an earlier turn of the conversation failed
  double arrival = 0;          // when it was due, in seconds since the start
  RequestTimings timings;
  std::vector<int32_t> tokens;
  std::string text;
};

struct LiveOptions {
  // Returns a data: URL for a picture: index of the arrival (Arrival::pictures_of if that is set),
  // number of the picture. Required for arrivals with pictures: they are sent as chats whose text
  // has about as many words as the prompt has tokens.
  std::function<std::string(size_t, int)> picture;
  // GenerateRequest::cache_salt of an arrival; empty: none.
  std::function<std::string(size_t)> salt;
  // Called from time to time with the number of requests that have ended.
  std::function<void(size_t)> progress;
};

struct LiveReport {
  std::vector<LiveAnswer> answers;  // in the order of the arrivals
  EngineStats stats;                // at the end
  // Mean of EngineStats::cost_correction: how much slower the machine was than when the costs were
  // measured.
  double cost_correction = 1;
  double invalid_kv = 0;  // mean share of KV in the pool whose adapter is absent
};

// Sends each arrival when it is due and the previous turn has ended. Token ids are taken modulo
// 256. adapters: names of loaded adapters, by AdapterId. Returns when all answers have ended.
// Greedy, without stop tokens.
LiveReport run_live(LiveTarget& target, std::span<const sim::Arrival> arrivals,
                    std::span<const std::string> adapters, const LiveOptions& options = {});
LiveReport run_live(Engine& engine, std::span<const sim::Arrival> arrivals,
                    std::span<const std::string> adapters, const LiveOptions& options = {});

}  // namespace valora::bench
