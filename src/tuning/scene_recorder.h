// Records the steps of scenes on an engine, with a reference before each scene and after the last.
#pragma once

#include <vector>

#include "scheduler/policies/policies_in_turn.h"
#include "tuning/step_collector.h"

namespace valora::tuning {

struct RecordedScenes {
  std::vector<scheduler::MeasuredStep> steps;                 // in order of time
  std::vector<std::vector<scheduler::MeasuredStep>> by_mode;  // the same steps, by mode
};

// A reference is a few steps of one base-model sequence in the first mode, which do little but read
// the weights. Before a part begins, the engine must have reported all previous steps.
class SceneRecorder {
 public:
  explicit SceneRecorder(scheduler::PoliciesInTurn& modes) : modes_(modes) {}

  StepCollector& collector() { return collector_; }
  void begin_reference();
  void begin_scene(size_t mode);
  // The steps of the scenes. The memory speed during a scene is taken from the references before
  // and after it.
  RecordedScenes recorded(size_t modes) const;

 private:
  struct Scene {
    size_t mode;
    size_t begin;  // its first step; the next reference begins where it ends
  };

  // For each reference, its median step relative to the median of all; 1 if it has no steps.
  std::vector<double> memory_times(const std::vector<scheduler::MeasuredStep>& steps) const;

  scheduler::PoliciesInTurn& modes_;
  StepCollector collector_;
  std::vector<size_t> references_;  // the first step of each reference
  std::vector<Scene> scenes_;       // scene i lies between references i and i + 1
};

}  // namespace valora::tuning
