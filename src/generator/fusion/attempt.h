// One attempt at teaching an adapter a task: trained, kept in a folder, and asked about all tasks
// that it then holds.
#pragma once

#include <functional>
#include <map>
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
  std::vector<const TaskData*> held;  // the tasks it holds already, in the order they came
  const TaskData* task = nullptr;     // the new one
  std::string from;  // folder of its values so far, of this rank or a lower one; empty: it has none
  std::string folder;  // where its values (fp32, PEFT) are left; the checkpoint lies beside it
};

struct FusionEvents {
  std::function<void(const std::string& what, int64_t done, int64_t total, const std::string& note)>
      progress;
  std::function<void(const FusionStep&)> step;  // ended, kept or rolled back
};

class AttemptRunner {
 public:
  AttemptRunner(const TrainableModel& model, Engine& engine, const FusionOptions& options,
                const FusionEvents& events)
      : model_(model), engine_(engine), options_(options), events_(events) {}

  // kept, failed and why are left open. The same attempt gives the same result, wherever it was
  // ended before.
  Result<FusionStep> run(const Attempt& attempt);
  // Of the base model (adapter: empty), or of an adapter's folder.
  Result<double> accuracy(const TaskData& data, const std::string& folder);
  // What an adapter of these tasks consists of: heads in the tasks' order.
  Result<AdapterShape> shape_of(const std::vector<const TaskData*>& tasks, int64_t rank) const;
  // A folder's values as parameters of that shape; heads and ranks that it does not have yet begin
  // anew.
  Result<AdapterParameters> load(const AdapterShape& shape, const std::string& folder,
                                 uint64_t seed) const;
  // The final folder of an adapter.
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
