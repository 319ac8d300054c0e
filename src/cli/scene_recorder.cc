#include "cli/scene_recorder.h"

#include <cmath>

#include "base/quantile.h"

namespace valora::cli {
namespace {

// Of each reference, its median step beside that of all of them; 1 if it has no steps.
std::vector<double> memory_times(const std::vector<scheduler::MeasuredStep>& steps,
                                 const std::vector<size_t>& groups, size_t references) {
  std::vector<std::vector<double>> seconds(references);
  std::vector<double> all;
  for (size_t i = 0; i < steps.size(); ++i)
    if (groups[i] % 2 == 0 && steps[i].shape.prefill_tokens == 0) {
      seconds.at(groups[i] / 2).push_back(steps[i].seconds);
      all.push_back(steps[i].seconds);
    }
  std::vector<double> times;
  for (const auto& of_one : seconds)
    times.push_back(of_one.empty() ? 1 : median(of_one) / median(all));
  return times;
}

}  // namespace

void SceneRecorder::begin_reference() {
  modes_.take(0);
  collector_.begin(2 * mode_of_scene_.size());
}

void SceneRecorder::begin_scene(size_t mode) {
  modes_.take(mode);
  collector_.begin(2 * mode_of_scene_.size() + 1);
  mode_of_scene_.push_back(mode);
}

RecordedScenes SceneRecorder::recorded(size_t modes) const {
  const std::vector<scheduler::MeasuredStep> steps = collector_.steps();
  const std::vector<size_t> groups = collector_.groups();
  const std::vector<double> times = memory_times(steps, groups, mode_of_scene_.size() + 1);
  RecordedScenes recorded;
  recorded.by_mode.resize(modes);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (groups[i] % 2 == 0) continue;
    const size_t scene = groups[i] / 2;
    scheduler::MeasuredStep step = steps[i];
    step.memory_time = std::sqrt(times[scene] * times[scene + 1]);
    recorded.steps.push_back(step);
    recorded.by_mode.at(mode_of_scene_[scene]).push_back(step);
  }
  return recorded;
}

}  // namespace valora::cli
