// What a fusion has done so far, on disk after each step: a run that was ended at any moment goes on from there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "generator/data/fusion_report.h"

namespace valora::generator {

struct OpenAdapter {
  std::string name;                 // "adapter-1"
  std::string kept;                 // folder (fp32 PEFT) of its values after the last step that was kept
  int64_t rank = 0;
  std::vector<std::string> tasks;   // in the order they were fused
};

struct FusionState {
  std::string identity;             // of options, tasks and data
  bool measured = false;            // the base was
  std::vector<std::string> order;   // of the tasks' names
  size_t next = 0;                  // place in the order of the task that is under way
  size_t attempt = 0;               // of that task: what was tried and rolled back
  std::vector<OpenAdapter> adapters;
  std::vector<FusionStep> alone;    // tasks in an adapter of their own: kept, compared with, or not good enough
  FusionReport report;
  bool done = false;
};

Status write_state(const std::string& path, const FusionState& state);
// None where there is no file. kConflict where it is of another run.
Result<std::optional<FusionState>> read_state(const std::string& path, const std::string& identity);

}  // namespace valora::generator
