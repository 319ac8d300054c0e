// The accuracy-aware knowledge fusion of VaLoRA §4.2.1: greedily finds few adapters that keep every
// task's floor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "generator/data/manifest.h"
#include "generator/fusion/attempt.h"
#include "generator/fusion/state.h"

namespace valora::generator {

// Writes to options.output: adapters/NAME (PEFT folders), manifest.json, report.json, report.html,
// and state.json with the folder attempts. These hold every attempt's result, so that an
// interrupted run continues, and a run with other floors trains only what is new. One process at a
// time may use a folder.
class Fusion {
 public:
  Fusion(const FusionOptions& options, FusionEvents events)
      : options_(options), events_(std::move(events)) {}

  // Tries each task in the open adapters, as options.packing says; if it fits in none, it gets its
  // own. Attempts that miss a floor are rolled back. Errors name the task and the cause. Files are
  // written as a whole or not at all.
  Result<FusionReport> run(const std::vector<Task>& tasks);

 private:
  // An adapter during fusion. Its lineage identifies what its values depend on besides the options:
  // "digits:1f…@16", then " > defects:09…" per further task, followed by "@32" if its rank grew to
  // 32 for that task.
  struct OpenAdapter {
    std::string name, lineage;
    int64_t rank = 0;
    std::vector<std::string> tasks;  // in the order of fusion
    // Holds a task that misses its floor in every adapter. No further tasks are tried in it.
    bool closed = false;
  };
  struct Candidate {
    int adapter = -1;  // index of an open adapter; -1: a new one
    int64_t rank = 0;
  };
  Status open(const std::vector<Task>& tasks);
  Status measure_base();
  Status train_alone();
  Status place(const TaskData& data);
  std::vector<Candidate> candidates() const;
  OpenAdapter grown(const TaskData& data, const Candidate& candidate) const;
  Result<FusionStep> try_out(const TaskData& data, const Candidate& candidate);
  void add_step(FusionStep step, bool kept, std::string why);
  void keep(const Candidate& candidate, OpenAdapter adapter);
  Status keep_best_of_own(const TaskData& data);
  Status finish();
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
};

}  // namespace valora::generator
