// The results of a fusion so far, saved after each attempt. A run that was interrupted, or is
// repeated with other floors, order or packing, reuses them instead of training and evaluating
// again.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "generator/data/fusion_report.h"

namespace valora::generator {

struct FusionState {
  std::string identity;                // of the model and the training options
  std::map<std::string, double> base;  // the base model's accuracy, by the task's name and data
  // By lineage (fusion.h). The values are in the folder of that name.
  std::map<std::string, FusionStep> attempts;
  size_t peak_bytes = 0;  // peak resident memory of all runs
};

Status write_state(const std::string& path, const FusionState& state);
// Empty state if there is no file. kConflict if the file belongs to another model or training.
Result<FusionState> read_state(const std::string& path, const std::string& identity);

}  // namespace valora::generator
