// An application: requests that share latency targets, a priority and limits
// (docs/applications.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace valora::server {

struct Application {
  std::string name;
  std::vector<std::string> models;  // names of models whose requests belong to it
  // Targets in seconds; absent: none.
  std::optional<double> ttft;  // from the arrival to the first token
  std::optional<double> tpot;  // for each further token
  std::optional<double> e2e;   // from the arrival to the last token; only measured
  int priority = 0;            // of requests that send none; lower runs first
  double share = 1;            // of the engine's time, while several applications wait; above 0
  // 429 beyond; absent: no limit.
  std::optional<int> max_waiting;  // requests accepted and not yet answered with a first token
  std::optional<double> rate;      // requests per second, with bursts of max(1, rate)
};

}  // namespace valora::server
