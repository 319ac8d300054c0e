// Benchmark of one shape: contenders, required work and measured times.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "lab/ops/limits.h"
#include "lab/ops/timing.h"

namespace valora::bench {

inline constexpr const char* kOurs = "valora";

// One implementation. `run` is timed. `result` runs it once on fresh outputs and returns the
// result.
struct Contender {
  std::string name;
  std::function<void()> run;
  std::function<at::Tensor()> result;
};

// The minimum work of an operation.
struct Work {
  double bytes = 0;       // memory traffic; 0 if all data is in the caches
  double operations = 0;  // multiplications and additions
  Arithmetic arithmetic = Arithmetic::kBf16;
};

struct Measurement {
  std::string operation;  // linear, atmm, merge, …
  std::string label;      // the shape as text
  Json shape;             // the shape as JSON fields
  Work work;
  double bandwidth = 0;         // of the machine in the same rounds, in bytes per second
  double arithmetic = 0;        // in operations per second
  double bound_seconds = 0;     // minimum time at the machine's limits
  bool bandwidth_bound = true;  // otherwise bound by arithmetic
  std::vector<Timing> timings;  // ours first

  const Timing& ours() const { return timings.front(); }
  const Timing* find(const std::string& name) const;
  // Time of `name` divided by ours; 0 if it was not measured.
  double ratio(const std::string& name) const;
  double share_of_limit() const { return bound_seconds / ours().seconds.p50; }
};

struct Settings {
  bool quick = false;
  int threads = 0;     // 0: libtorch's default
  std::string filter;  // run only shapes whose "operation label" contains it
  double seconds = 0;  // per shape; 0: 0.4, or less if quick
};

// Shared by all shapes of a run.
struct Bench {
  RaceRules rules;
  Limits limits;
  Json notes = Json::object();  // intermediate findings, for the report
};

// A shape to measure. `measure` allocates all data. It returns nullopt if it only prepares later
// shapes, such as by a search.
struct Shape {
  std::string operation;
  std::string label;
  Json fields;
  std::function<std::optional<Measurement>(Bench&)> measure;
};

// Compares each contender's result with the first one's: |difference| <= tolerance · (1 + |largest
// value|). Throws c10::Error if they differ.
void check_alike(const std::vector<Contender>& contenders, double tolerance);
// Times the contenders and the loops of their limits in turns (timing.h).
Measurement time_in_turns(Bench& bench, const Work& work, const std::vector<Contender>& contenders);
// check_alike, then time_in_turns.
Measurement compete(Bench& bench, const Work& work, const std::vector<Contender>& contenders,
                    double tolerance);

// A contender whose run has no side effects.
Contender pure(std::string name, const std::function<at::Tensor()>& run);
// A contender whose run adds to y.
Contender adding(std::string name, const at::Tensor& y, const std::function<void()>& run);

}  // namespace valora::bench
