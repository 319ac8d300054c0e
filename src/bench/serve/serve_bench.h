// `valora bench serve`: a load on a server, and what it answered.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/serve/load.h"
#include "bench/serve/record.h"

namespace valora::bench {

struct Progress {
  int ended = 0, failed = 0, total = 0;
  double seconds = 0;
};

struct ServeRun {
  std::vector<std::string> models;  // that were asked
  std::vector<RequestRecord> records;
};

// kInvalidArgument for a load that makes no sense, kUnavailable where no server answers. What
// happens to single requests stands in their records. on_progress is called whenever one has ended.
Result<ServeRun> run_serve_bench(const ServeLoad& load,
                                 const std::function<void(const Progress&)>& on_progress);

}  // namespace valora::bench
