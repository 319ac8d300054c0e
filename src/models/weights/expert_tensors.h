// Tensors of all experts of a mixture, whose axes releases of transformers order differently.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace valora::models {

// True if a tensor of this shape is [experts, in, out], false if it is `rows`: [experts, out, in].
// kUnprocessable, beginning with `tensor`, if it is neither, or if that cannot be told.
Result<bool> experts_are_transposed(const std::string& tensor, const std::vector<int64_t>& shape,
                                    const std::vector<int64_t>& rows);

}  // namespace valora::models
