// `valora tune`: its options, and the search for tiles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/options.h"
#include "base/result.h"
#include "cli/options/engine_flags.h"

namespace valora::cli {

struct TuneFlags {
  EngineOptions engine;  // model_path, dtype, ranks, rounding
  HubFlags hub;
  std::string output;
  std::vector<int64_t> ranks{8, 16, 32, 64};
  int64_t max_tokens = 2048;
  std::optional<int> threads;
  double seconds = 0;
  bool resume = false;
  bool cost = false;

  bool on_gpu() const { return engine.device == DeviceKind::kCuda; }
  double seconds_or_default() const { return seconds > 0 ? seconds : cost ? 150 : 300; }
};

// Measures tile sizes on this machine's CPU or GPU for a model's shapes, and writes the table that
// engines use.
Status tune_tiles(const TuneFlags& flags);

}  // namespace valora::cli
