// Finds the weight files of a model folder.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace valora::models {

struct WeightFiles {
  std::vector<std::string> paths;  // ascending; the order in which transformers reads shards
  // Shards exist too, but the single file is read instead of them.
  bool shards_ignored = false;
};

// Chooses as transformers does: DIR/model.safetensors, else the shards of
// DIR/model.safetensors.index.json. kNotFound if the folder has neither.
Result<WeightFiles> find_weight_files(const std::string& dir);

}  // namespace valora::models
