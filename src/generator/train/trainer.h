// Trains one adapter over the samples of one or more tasks (VaLoRA §4.2.1, "standard supervised
// learning").
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "generator/train/adapter_parameters.h"
#include "generator/train/checkpoint.h"
#include "generator/train/options.h"
#include "generator/train/pass.h"
#include "generator/train/trainable_model.h"

namespace valora::generator {

// The samples of one task, and their share of each step.
struct TrainingSource {
  std::shared_ptr<const std::vector<Example>> examples;
  double share = 1;
};

struct TrainingProgress {
  int64_t step = 0, steps = 0;  // completed, total
  double loss = 0;              // of the last step
  double learning_rate = 0, gradient_norm = 0;
  double samples_per_second = 0;
};

struct TrainingCallbacks {
  std::function<void(const TrainingProgress&)> progress;
  // Scores the current adapter; higher is better. Called every `evaluate_every` steps and at the
  // end.
  std::function<Result<double>(const AdapterParameters&)> evaluate;
  // Ends the training with kCancelled after the current step, or when `evaluate` returns
  // kCancelled. A checkpoint is written first.
  std::stop_token stop;
};

struct TrainingResult {
  int64_t steps = 0;  // completed; fewer than requested after early stopping
  double first_loss = 0, last_loss = 0;
  std::optional<double> best_score;
  // Totals of this run and of the runs up to its checkpoint, excluding evaluations.
  double seconds = 0, samples_per_second = 0;
  double evaluation_seconds = 0;  // spent in `evaluate`
};

class Trainer {
 public:
  // checkpoint: path of the file; empty: no checkpoints.
  Trainer(const TrainableModel& model, TrainingOptions options, std::string checkpoint);

  // Trains `parameters` in place. They end up as those with the best score or, without evaluations,
  // those of the last step. If a step's loss or gradient norm is not finite, training ends with an
  // error that names the step, and the parameters stay as they were before it.
  Result<TrainingResult> train(AdapterParameters& parameters,
                               const std::vector<TrainingSource>& sources,
                               const TrainingCallbacks& callbacks);

 private:
  struct Step {
    double loss = 0, gradient_norm = 0;
  };
  struct Course;  // state of one call of train()
  Result<Step> step(AdapterParameters& parameters, std::vector<const Example*> examples,
                    int64_t index);
  std::string identity(const AdapterParameters& parameters,
                       const std::vector<TrainingSource>& sources) const;
  bool evaluation_is_due(const Course& course) const;
  Status evaluate(Course& course) const;
  bool ended(const Course& course) const;
  Status advance(Course& course);
  Status save(Course& course) const;

  const TrainableModel& model_;
  TrainingOptions options_;
  std::string checkpoint_;
  VisualSource visuals_;
  TrainingPass pass_;
  RealClock clock_;
};

}  // namespace valora::generator
