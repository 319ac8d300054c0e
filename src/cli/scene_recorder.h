// Records the steps of scenes on an engine, with a reference before each scene and after the last.
#pragma once

#include <vector>

#include "bench/live/policies_in_turn.h"
#include "cli/step_collector.h"

namespace valora::cli {

struct RecordedScenes {
  std::vector<scheduler::MeasuredStep> steps;                 // in the order of their time
  std::vector<std::vector<scheduler::MeasuredStep>> by_mode;  // the same ones
};

// A reference is some steps of one sequence of the base model in the first mode, which do little
// but read the weights. The engine must have reported the steps before when a part begins.
class SceneRecorder {
 public:
  explicit SceneRecorder(bench::PoliciesInTurn& modes) : modes_(modes) {}

  StepCollector& collector() { return collector_; }
  void begin_reference();
  void begin_scene(size_t mode);
  // The steps of the scenes. A scene read memory as slowly as the references at its sides.
  RecordedScenes recorded(size_t modes) const;

 private:
  bench::PoliciesInTurn& modes_;
  StepCollector collector_;  // group 2 s is the reference before scene s, 2 s + 1 the scene
  std::vector<size_t> mode_of_scene_;  // in their order
};

}  // namespace valora::cli
