// A token chosen for a sequence by a step, with log probabilities if requested.
#pragma once

#include <cstdint>
#include <vector>

namespace valora::scheduler {

struct RankedToken {
  int32_t id = 0;
  float logprob = 0;
};

struct SampledToken {
  int32_t id = 0;
  // Log probability before penalties and temperature; 0 if not requested.
  float logprob = 0;
  std::vector<RankedToken> top;  // most likely first
  bool last = false;             // the sequence ends here, because nothing can follow
};

}  // namespace valora::scheduler
