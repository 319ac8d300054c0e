// `valora bench ops`: every CPU operation over grids of shapes, against rivals in the same process
// and run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/ops/measurement.h"

namespace valora::bench {

struct Machine {
  std::string isa;
  int threads = 0;
  int64_t last_level_cache = 0;
  // At the start of the run. Operations per second; the last two with inputs rounded to 8 bits.
  double bandwidth = 0;  // bytes per second
  double bf16_arithmetic = 0, float_arithmetic = 0, int8_arithmetic = 0, int4_arithmetic = 0;
};

struct OpsRun {
  Settings settings;
  Machine machine;
  Json notes;
  std::vector<Measurement> measurements;
};

// (shapes done, total shapes, label of the next shape)
using ShapeProgress = std::function<void(int, int, const std::string&)>;

// kInvalidArgument if the filter matches no shape; kInternal if a rival's result differs from ours.
Result<OpsRun> run_ops_bench(const Settings& settings, const ShapeProgress& progress);

}  // namespace valora::bench
