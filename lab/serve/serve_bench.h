// The load generator of `valora bench serve`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/serve/load.h"
#include "lab/serve/record.h"

namespace valora::bench {

struct Progress {
  int ended = 0, failed = 0, total = 0;
  double seconds = 0;
};

struct ServeRun {
  std::vector<std::string> models;  // models that received requests
  std::vector<RequestRecord> records;
};

// Runs the load and waits for all answers. kInvalidArgument: invalid load; kUnavailable: the server
// does not respond. Errors of single requests are in their records. Calls on_progress after each
// request.
Result<ServeRun> run_serve_bench(const ServeLoad& load,
                                 const std::function<void(const Progress&)>& on_progress);

}  // namespace valora::bench
