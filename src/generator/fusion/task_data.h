// A task with its samples, ready to be trained on and to be asked.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/engine.h"
#include "base/digest.h"
#include "generator/data/task.h"
#include "generator/fusion/options.h"
#include "generator/train/trainable_model.h"

namespace valora::generator {

struct TaskData {
  Task task;  // with its labels filled in
  std::vector<Sample> validation;
  std::vector<Example>
      examples;  // of the training samples; their head index is 0 where the task has a head
  int64_t train_samples = 0, dropped = 0;
  std::string head;  // its name in an adapter; empty: none
  Digest digest;     // of all of it
};

struct LoadingProgress {
  std::string task, what;
  int done = 0, total = 0;
};

// Reads the task's data, or asks its teacher (engine: for one that is an adapter), and prepares it.
// Errors name what is wrong and where.
Result<TaskData> load_task(const Task& task, const FusionOptions& options,
                           const TrainableModel& model, Engine& engine,
                           const std::function<void(const LoadingProgress&)>& progress);

// The accuracy of always giving the most frequent answer, where the task has labels.
std::optional<double> chance_of(const TaskData& data);

}  // namespace valora::generator
