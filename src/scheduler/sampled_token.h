// A token that a step chose for a sequence, with log probabilities if they were requested.
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
  bool last = false;             // nothing can follow it: the sequence ends
};

}  // namespace valora::scheduler
