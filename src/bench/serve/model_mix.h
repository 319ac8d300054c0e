// Which model each request asks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace valora::bench {

// For each of `requests` the index of its model, below `models`. Distributions: "uniform" draws
// each alike; "zipf:S" the k-th (from 1) in proportion to k^-S; "distinct" takes them in turn, so
// that as many requests as there are models have different ones. kInvalidArgument for any other
// text.
Result<std::vector<int>> mix_models(const std::string& distribution, int models, int requests,
                                    uint64_t seed);

}  // namespace valora::bench
