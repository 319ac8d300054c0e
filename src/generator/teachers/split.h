// Which samples validate: a share of exact size, chosen by a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "generator/data/sample.h"

namespace valora::generator {

struct SplitSamples {
  std::vector<Sample> train, validation;  // each in the order that the samples had
};

// share: 0 … 1, rounded to whole samples; of two or more, both parts get one where it is neither 0
// nor 1. A sample's place follows from the seed and its origin, not from its neighbours' places.
SplitSamples split_samples(std::vector<Sample> samples, double share, uint64_t seed);

}  // namespace valora::generator
