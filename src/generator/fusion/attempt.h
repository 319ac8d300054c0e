// One attempt to teach an adapter a task: trains it, saves it to a folder, and evaluates all tasks
// that it then holds.
#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "api/engine.h"
#include "generator/data/fusion_report.h"
#include "generator/fusion/task_data.h"
#include "generator/train/adapter_parameters.h"
#include "generator/train/trainer.h"

namespace valora::generator {

struct Attempt {
  std::string adapter;  // its name
  int64_t rank = 16;
  std::vector<int32_t> invocation;    // AdapterShape::invocation
  std::vector<const TaskData*> held;  // tasks already in the adapter, in the order of fusion
  const TaskData* task = nullptr;     // the task to add
  std::string from;    // folder with the current values, of this rank or a lower one; empty: none
  std::string folder;  // for the new values (fp32, PEFT); the checkpoint is next to it
};

struct FusionEvents {
  std::function<void(const std::string& what, int64_t done, int64_t total, const std::string& note)>
      progress;
  std::function<void(const FusionStep&)> step;  // called when a step has been kept or rolled back
  // Ends the fusion with kCancelled. A training in progress leaves its checkpoint.
  std::stop_token stop;
};

class AttemptRunner {
 public:
  AttemptRunner(const TrainableModel& model, Engine& engine, const FusionOptions& options,
                const FusionEvents& events)
      : model_(model), engine_(engine), options_(options), events_(events) {}

  // Leaves kept, failed and why unset. Equal attempts give equal results, even after an
  // interruption.
  Result<FusionStep> run(const Attempt& attempt);
  // The accuracy of an adapter folder, or of the base model if `folder` is empty.
  Result<double> accuracy(const TaskData& data, const std::string& folder);
  // The shape of an adapter for these tasks, with heads in the order of the tasks.
  Result<AdapterShape> shape_of(const std::vector<const TaskData*>& tasks, int64_t rank,
                                std::vector<int32_t> invocation) const;
  // Loads a folder's values as parameters of that shape. New heads and ranks start with initial
  // values.
  Result<AdapterParameters> load(const AdapterShape& shape, const std::string& folder,
                                 uint64_t seed) const;
  // Writes the final folder of an adapter.
  Status write(const std::string& folder, const AdapterParameters& parameters,
               const std::vector<const TaskData*>& tasks, bool bfloat16) const;

 private:
  std::vector<TrainingSource> sources_of(const Attempt& attempt,
                                         const std::vector<const TaskData*>& tasks) const;
  Result<std::map<std::string, double>> accuracies(const std::vector<const TaskData*>& tasks,
                                                   const std::string& folder);

  const TrainableModel& model_;
  Engine& engine_;
  const FusionOptions& options_;
  const FusionEvents& events_;
};

}  // namespace valora::generator
