// Which files of a model folder hold its weights.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace valora::models {

struct WeightFiles {
  std::vector<std::string> paths;  // ascending; the order in which transformers reads shards
  // Whether shards of an index lie beside the whole file, which is read instead of them.
  bool shards_ignored = false;
};

// As transformers chooses: DIR/model.safetensors, and without it the shards of
// DIR/model.safetensors.index.json. kNotFound if the folder has neither.
Result<WeightFiles> find_weight_files(const std::string& dir);

}  // namespace valora::models
