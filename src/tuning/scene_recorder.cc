#include "tuning/scene_recorder.h"

#include <cmath>

#include "base/quantile.h"

namespace valora::tuning {

void SceneRecorder::begin_reference() {
  modes_.take(0);
  references_.push_back(collector_.size());
}

void SceneRecorder::begin_scene(size_t mode) {
  modes_.take(mode);
  scenes_.push_back({mode, collector_.size()});
}

std::vector<double> SceneRecorder::memory_times(
    const std::vector<scheduler::MeasuredStep>& steps) const {
  std::vector<std::vector<double>> seconds;
  std::vector<double> all;
  for (size_t i = 0; i < references_.size(); ++i) {
    const size_t end = i < scenes_.size() ? scenes_[i].begin : steps.size();
    auto& of_one = seconds.emplace_back();
    for (size_t s = references_[i]; s < end; ++s)
      if (steps[s].shape.prefill_tokens == 0) of_one.push_back(steps[s].seconds);
    all.insert(all.end(), of_one.begin(), of_one.end());
  }
  std::vector<double> times;
  for (const auto& of_one : seconds)
    times.push_back(of_one.empty() ? 1 : median(of_one) / median(all));
  return times;
}

RecordedScenes SceneRecorder::recorded(size_t modes) const {
  const std::vector<scheduler::MeasuredStep> steps = collector_.steps();
  const std::vector<double> times = memory_times(steps);
  RecordedScenes recorded;
  recorded.by_mode.resize(modes);
  for (size_t i = 0; i < scenes_.size(); ++i)
    for (size_t s = scenes_[i].begin; s < references_[i + 1]; ++s) {
      scheduler::MeasuredStep step = steps[s];
      step.memory_time = std::sqrt(times[i] * times[i + 1]);
      recorded.steps.push_back(step);
      recorded.by_mode.at(scenes_[i].mode).push_back(step);
    }
  return recorded;
}

}  // namespace valora::tuning
