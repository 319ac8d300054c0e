// The results of a fusion so far, on disk after each attempt. A run that was interrupted, or that
// is repeated with other floors, order or packing, reuses them instead of training and evaluating
// again.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "generator/data/fusion_report.h"

namespace valora::generator {

struct FusionState {
  std::string identity;                // of the model and of the training options
  std::map<std::string, double> base;  // the base model's accuracy, by a task's name and data
  // By lineage (fusion.h). The values are in the folder of that name.
  std::map<std::string, FusionStep> attempts;
  size_t peak_bytes = 0;  // of resident memory, over all runs
};

Status write_state(const std::string& path, const FusionState& state);
// Without attempts if there is no file. kConflict if it belongs to another model or training.
Result<FusionState> read_state(const std::string& path, const std::string& identity);

}  // namespace valora::generator
