// An application: requests that share latency targets, a priority and limits
// (docs/applications.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace valora::server {

struct Application {
  std::string name;
  std::vector<std::string> models;  // models whose requests belong to this application
  // Targets in seconds; nullopt: none.
  std::optional<double> ttft;  // from arrival to the first token
  std::optional<double> tpot;  // for each further token
  std::optional<double> e2e;   // from arrival to the last token; only measured
  int priority = 0;            // default for requests that send none; lower runs first
  double share = 1;            // of the engine's time while several applications wait; above 0
  // Answered with 429 when exceeded; nullopt: no limit.
  std::optional<int> max_waiting;  // requests accepted and not yet answered with a first token
  std::optional<double> rate;      // requests per second, with bursts of max(1, rate)
};

// Reads the file of `valora serve --applications`: YAML or JSON (docs/applications.md). Returns at
// least one application. Names are distinct, and no two applications share a model. Errors:
// kInvalidArgument with "FILE:LINE: …" and the key, or those of read_file().
Result<std::vector<Application>> read_applications(const std::string& path);

}  // namespace valora::server
