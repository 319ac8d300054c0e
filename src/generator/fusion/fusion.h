// The accuracy-aware knowledge fusion of VaLoRA §4.2.1: the fewest adapters that keep every task's
// floor, greedily.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "generator/data/manifest.h"
#include "generator/fusion/attempt.h"
#include "generator/fusion/state.h"

namespace valora::generator {

// Under options.output: adapters/NAME (PEFT folders), manifest.json, report.json, report.html, and
// state.json with the folder attempts: every attempt's result, so that a run that was ended goes
// on, and one with other floors trains only what is new. One process at a time works on a folder.
class Fusion {
 public:
  Fusion(const FusionOptions& options, FusionEvents events)
      : options_(options), events_(std::move(events)) {}

  // Each task is tried in the adapters there are, by the options' packing, and where it fits in
  // none it gets one of its own; what fails a floor is rolled back. Errors name the task and what
  // is wrong with it; nothing is half-written.
  Result<FusionReport> run(std::vector<Task> tasks);

 private:
  // An adapter as it stands. Its lineage says all that its values follow from beside the options:
  // "digits:1f…@16", then " > defects:09…" for each task that it was trained on next, with "@32"
  // behind it where it grew to that rank for it.
  struct OpenAdapter {
    std::string name, lineage;
    int64_t rank = 0;
    std::vector<std::string> tasks;  // in the order they were fused
    bool closed =
        false;  // holds a task that reaches its floor nowhere: what could not be kept is not tried
  };
  struct Candidate {
    int adapter = -1;  // place among those there are; -1: a new one
    int64_t rank = 0;
  };
  Status open(std::vector<Task> tasks);
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
