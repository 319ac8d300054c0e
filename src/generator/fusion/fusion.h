// The accuracy-aware knowledge fusion of VaLoRA §4.2.1: greedily finds few adapters that keep every
// task's floor.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "generator/data/manifest.h"
#include "generator/fusion/attempt.h"
#include "generator/fusion/state.h"

namespace valora::generator {

// Writes to options.output: manifest.json and its adapters/NAME (PEFT folders), report.json,
// report.html, and state.json with the folder attempts. The last two hold every attempt's result,
// so that an interrupted run can continue, and a run with other floors trains only new attempts.
// Only one process at a time may use a folder.
class Fusion {
 public:
  Fusion(const FusionOptions& options, FusionEvents events);
  Fusion(const Fusion&) = delete;
  Fusion& operator=(const Fusion&) = delete;

  // Tries each task in the open adapters, as options.packing says; if it fits in none, it gets its
  // own. Attempts that miss a floor are rolled back. Errors name the task and the cause: kConflict
  // if an existing manifest has other tasks and options.replace is not set; kCancelled on a stop.
  // The manifest and the adapters it names change in one step.
  Result<FusionReport> run(const std::vector<Task>& tasks);

 private:
  // An adapter during fusion. Its lineage and the options determine its values:
  // "digits:1f…@16", then " > defects:09…" per further task, followed by "@32" if its rank grew to
  // 32 for that task. An activated one begins with its invocation: "[7,8] digits:1f…@16".
  struct OpenAdapter {
    std::string name, lineage;
    int64_t rank = 0;
    std::vector<int32_t> invocation;  // AdapterShape::invocation
    std::vector<std::string> tasks;   // in the order of fusion
    // The adapter holds a task that misses its floor in every adapter. No further tasks are tried
    // in it.
    bool closed = false;
  };
  struct Candidate {
    int adapter = -1;  // index of an open adapter; -1: a new one
    int64_t rank = 0;
    std::vector<int32_t> invocation = {};
  };
  Status check_other_tasks(const std::vector<Task>& tasks) const;
  Status prepare_folder(const std::vector<Task>& tasks) const;
  Status open(const std::vector<Task>& tasks);
  void report_changed_data(const TaskData& data) const;
  Status measure_base();
  Status train_separately();
  // later: number of tasks that come after this one.
  Status place(const TaskData& data, int64_t later);
  void add_candidates(const std::vector<int32_t>& invocation, std::vector<Candidate>& list) const;
  std::vector<Candidate> candidates(const TaskData& data) const;
  int64_t max_attempts(int64_t tasks, int64_t adapters) const;
  OpenAdapter grown(const TaskData& data, const Candidate& candidate) const;
  Result<FusionStep> run_attempt(const TaskData& data, const Candidate& candidate);
  FusionStep& add_step(FusionStep step, bool kept, std::string why);
  void keep(const Candidate& candidate, OpenAdapter adapter);
  void keep_best(const TaskData& data, const std::vector<size_t>& own);
  Status save_state();
  Status finish();
  std::set<std::string> folders_in_use() const;
  Result<std::string> install(const OpenAdapter& adapter,
                              const std::vector<const TaskData*>& tasks) const;
  ReportedAdapter reported(const OpenAdapter& adapter, const std::string& folder) const;
  ManifestEntry entry_of(const TaskData& data, const ReportedAdapter& home) const;
  void report_separate_runs();
  Status drop_other_adapters() const;
  const TaskData& data_of(const std::string& task) const;
  std::string folder_of(const std::string& lineage) const;

  const FusionOptions& options_;
  FusionEvents events_;
  std::unique_ptr<TrainableModel> model_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<AttemptRunner> runner_;
  std::vector<TaskData> data_;
  FusionState state_;
  std::vector<OpenAdapter> adapters_;
  FusionReport report_;
  int64_t attempts_ = 0;      // started, including reused ones
  int64_t max_attempts_ = 0;  // upper bound for this run
};

}  // namespace valora::generator
