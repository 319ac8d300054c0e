// A task with its samples, prepared for training and evaluation.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
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
  std::shared_ptr<const std::vector<Example>> examples;  // of the training samples
  int64_t train_samples = 0, dropped = 0;
  std::string head;  // of its head in an adapter; empty: none
  // Of the activated adapters that are tried for it; empty: none are.
  std::vector<int32_t> invocation;
  // For the manifest (datasets.h: common_question, answer_labels).
  std::string question;
  std::vector<std::string> labels;
  Digest digest;  // of the task and its data, including media
};

struct LoadingProgress {
  std::string task, what;
  int done = 0, total = 0;
};

// The name of the task's head in an adapter; empty: none.
std::string head_name(const Task& task);
// kInvalidArgument if two tasks, which may end up in the same adapter, have equal head names.
Status check_head_names(const std::vector<Task>& tasks);

// Identifies a task together with its data.
inline std::string key_of(const TaskData& data) { return data.task.name + ":" + data.digest.hex(); }

// Reads the task's data, or asks its teacher (engine: for teachers that are adapters), and prepares
// it. Errors name the cause and the location; kCancelled on a stop. Logs how many answers exceed
// the task's limit; it is an error if all do and only whole answers count.
Result<TaskData> load_task(const Task& task, const FusionOptions& options,
                           const TrainableModel& model, Engine& engine,
                           const std::function<void(const LoadingProgress&)>& progress,
                           const std::stop_token& stop);

// Up to `most` training samples of the task with their answers, for statistics. kInvalidArgument if
// the samples come from a teacher.
Result<std::vector<ExampleRequest>> sample_requests(const Task& task, int64_t most);

// The accuracy of always giving the most frequent answer, if the task has labels.
std::optional<double> chance_of(const TaskData& data);

}  // namespace valora::generator
