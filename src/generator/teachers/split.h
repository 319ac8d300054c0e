// Chooses validation samples: an exact share, determined by a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "generator/data/sample.h"

namespace valora::generator {

struct SplitSamples {
  std::vector<Sample> train, validation;  // both in the original order
};

// share: 0 … 1, rounded to whole samples. With two or more samples and a share other than 0 and 1,
// both parts are non-empty. A sample's part depends on the seed and its origin, not on its
// position.
SplitSamples split_samples(std::vector<Sample> samples, double share, uint64_t seed);

}  // namespace valora::generator
