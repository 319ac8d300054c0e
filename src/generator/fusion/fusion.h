// The accuracy-aware knowledge fusion of VaLoRA §4.2.1: the fewest adapters that keep every task's floor, greedily.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "generator/data/manifest.h"
#include "generator/fusion/attempt.h"
#include "generator/fusion/state.h"

namespace valora::generator {

// Under options.output: adapters/NAME (PEFT folders), manifest.json, report.json, report.html, and state.json with the
// folder work, from which a run that was ended goes on. One process at a time works on a folder.
class Fusion {
 public:
  Fusion(const FusionOptions& options, FusionEvents events) : options_(options), events_(std::move(events)) {}

  // Each task is tried in the adapters there are, by the options' packing, and where it fits in none it gets one of its
  // own; what fails a floor is rolled back. Errors name the task and what is wrong with it; nothing is half-written.
  Result<FusionReport> run(std::vector<Task> tasks);

 private:
  struct Candidate {
    int adapter = -1;       // place among those there are; -1: a new one
    int64_t rank = 0;
    bool anew = false;      // at a higher rank than the adapter has: all of its tasks from the beginning
  };
  Status open(std::vector<Task> tasks);
  Status measure_base();
  Status train_alone();
  Status place(const TaskData& data);
  std::vector<Candidate> candidates() const;
  Attempt attempt_of(const TaskData& data, const Candidate& candidate) const;
  Result<FusionStep> try_candidate(const TaskData& data, const Candidate& candidate);
  Result<FusionStep> alone(const TaskData& data, int64_t rank);
  void keep(const TaskData& data, const Candidate& candidate, const Attempt& attempt, FusionStep& step);
  Status keep_best_of_own(const TaskData& data);
  Status finish();
  Status save() const { return write_state(options_.output + "/state.json", state_); }
  const TaskData& data_of(const std::string& task) const;
  std::string work(const std::string& name) const { return options_.output + "/work/" + name; }

  const FusionOptions& options_;
  FusionEvents events_;
  std::unique_ptr<TrainableModel> model_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<AttemptRunner> runner_;
  std::vector<TaskData> data_;
  FusionState state_;
};

}  // namespace valora::generator
