// Records the steps of scenes on an engine, with a reference before each scene and after the last.
#pragma once

#include <vector>

#include "bench/engine/step_collector.h"
#include "bench/live/policies_in_turn.h"

namespace valora::bench {

struct RecordedScenes {
  std::vector<scheduler::MeasuredStep> steps;                 // in the order of their time
  std::vector<std::vector<scheduler::MeasuredStep>> by_mode;  // the same ones
};

// A reference is some steps of one sequence of the base model in the first mode, which do little
// but read the weights. The engine must have reported the steps before when a part begins.
class SceneRecorder {
 public:
  explicit SceneRecorder(PoliciesInTurn& modes) : modes_(modes) {}

  StepCollector& collector() { return collector_; }
  void begin_reference();
  void begin_scene(size_t mode);
  // The steps of the scenes. A scene read memory as slowly as the references at its sides.
  RecordedScenes recorded(size_t modes) const;

 private:
  struct Scene {
    size_t mode;
    size_t begin;  // its first step; the next reference begins at its end
  };

  // For each reference, its median step relative to the median of all; 1 if it has no steps.
  std::vector<double> memory_times(const std::vector<scheduler::MeasuredStep>& steps) const;

  PoliciesInTurn& modes_;
  StepCollector collector_;
  std::vector<size_t> references_;  // the first step of each
  std::vector<Scene> scenes_;       // scene i is between references i and i + 1
};

}  // namespace valora::bench
