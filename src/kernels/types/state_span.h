// The state that a sequence of the flat batch has besides its KV, by pool blocks.
#pragma once

#include <cstdint>

namespace valora::kernels {

// What a step reads and writes of one sequence's state: lists of as many pool blocks as a state
// takes (kernels/cpu/delta/state_layout.h). A step writes `to` and `kept`, and nobody reads them
// before it has ended.
struct StateSpan {
  const int32_t* from = nullptr;  // after the tokens before the step; null: there are none
  const int32_t* to = nullptr;    // after the step's last token; may be `from`
  // After the first `kept_after` tokens of the step; null: not wanted.
  const int32_t* kept = nullptr;
  int64_t kept_after = 0;
};

}  // namespace valora::kernels
