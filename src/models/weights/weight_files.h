// The weight files of a model folder, and the forms of tensors in them.
#pragma once

#include <cstdint>
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

// For tensors of all experts of a mixture, whose axes releases of transformers order differently:
// true if a tensor of this shape is [experts, in, out], false if it is `rows`: [experts, out, in].
// kUnprocessable, beginning with `tensor`, if it is neither, or if that cannot be told.
Result<bool> experts_are_transposed(const std::string& tensor, const std::vector<int64_t>& shape,
                                    const std::vector<int64_t>& rows);

}  // namespace valora::models
