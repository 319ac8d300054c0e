// The tokens of a step or a training pass, one sequence after another, in host memory.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/types/spans.h"

namespace valora::serving {

struct FlatTokens {
  explicit FlatTokens(int axes) : positions(static_cast<size_t>(axes)) {}

  std::vector<int64_t> ids;                     // [T]
  std::vector<std::vector<int64_t>> positions;  // [axes][T]
  // The sequence length that determines each token's rotary frequencies, [T]. Empty if all tokens
  // have the frequencies of short sequences.
  std::vector<int64_t> rope_lengths;
  std::vector<kernels::QuerySpan> spans;  // one per sequence
  // The states of the sequences; empty if the model has none.
  std::vector<kernels::StateSpan> states;

  int64_t count() const { return static_cast<int64_t>(ids.size()); }
};

}  // namespace valora::serving
