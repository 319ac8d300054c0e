// What is measured at one shape, and what came out.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "bench/ops/limits.h"
#include "bench/ops/timing.h"

namespace valora::bench {

inline constexpr const char* kOurs = "valora";

// One implementation. `result` runs it once on fresh outputs and returns what it computed; `run` is
// what is timed.
struct Contender {
  std::string name;
  std::function<void()> run;
  std::function<at::Tensor()> result;
};

// What an operation needs at least.
struct Work {
  double bytes = 0;       // read from and written to memory; 0 where everything lies in the caches
  double operations = 0;  // multiplications and additions
  bool float32 = false;   // else bf16: which arithmetic limit holds
};

struct Measurement {
  std::string operation;  // linear, atmm, merge, …
  std::string label;      // the shape in words
  Json shape;             // and as fields
  Work work;
  double bandwidth = 0;         // the machine's, just before
  double bound_seconds = 0;     // at the machine's limit
  bool bandwidth_bound = true;  // which limit it is
  std::vector<Timing> timings;  // ours first

  const Timing& ours() const { return timings.front(); }
  const Timing* find(const std::string& name) const;
  // How many times our time `name` takes; 0 where it was not measured.
  double ratio(const std::string& name) const;
  double share_of_limit() const { return bound_seconds / ours().seconds.p50; }
};

struct Settings {
  bool quick = false;
  int threads = 0;     // 0: libtorch's
  std::string filter;  // only shapes whose "operation label" contains it
  double seconds = 0;  // a shape; 0: 0.4, or less with quick
};

// Shared by all shapes of a run.
struct Bench {
  RaceRules rules;
  Limits limits;
  Json notes = Json::object();  // what was found on the way, for the report
};

// A shape to be measured, or (where nothing comes back) something to be found out before. Nothing
// is allocated before measure().
struct Shape {
  std::string operation;
  std::string label;
  Json fields;
  std::function<std::optional<Measurement>(Bench&)> measure;
};

// Every contender's result against the first one's, |difference| <= tolerance · (1 + |largest
// value|); c10::Error where one computes something else.
void check_alike(const std::vector<Contender>& contenders, double tolerance);
// Lets them race.
Measurement time_in_turns(Bench& bench, const Work& work, const std::vector<Contender>& contenders);
// Both.
Measurement compete(Bench& bench, const Work& work, const std::vector<Contender>& contenders,
                    double tolerance);

// At the end of a run: by then the arithmetic limit has been seen.
void set_bound(Measurement& measurement, const Limits& limits);

// A contender whose run has no side effects.
Contender pure(std::string name, std::function<at::Tensor()> run);
// One that adds to y.
Contender adding(std::string name, const at::Tensor& y, std::function<void()> run);

}  // namespace valora::bench
