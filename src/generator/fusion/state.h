// What a fusion has found out so far, on disk after each attempt: a run that was ended at any
// moment, or is started again with other floors, another order or packing, takes from here what it
// would train and ask once more.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "generator/data/fusion_report.h"

namespace valora::generator {

struct FusionState {
  std::string identity;                // of the model and of how adapters are trained
  std::map<std::string, double> base;  // the base model's accuracy, by a task's name and data
  std::map<std::string, FusionStep>
      attempts;  // by lineage (fusion.h); their values lie in the folder of that name
};

Status write_state(const std::string& path, const FusionState& state);
// One without attempts where there is no file. kConflict where it is of another model or training.
Result<FusionState> read_state(const std::string& path, const std::string& identity);

}  // namespace valora::generator
