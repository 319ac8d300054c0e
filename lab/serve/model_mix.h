// Chooses the model of each request.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace valora::bench {

// Returns one model index in [0, models) per request. Distributions: "uniform"; "zipf:S", which
// draws the k-th model (k from 1) with probability proportional to k^-S; "distinct", which cycles
// through the models. kInvalidArgument for any other text.
Result<std::vector<int>> mix_models(const std::string& distribution, int models, int requests,
                                    uint64_t seed);

}  // namespace valora::bench
