// The state that a sequence of the flat batch has besides its KV, by pool blocks.
#pragma once

#include <array>
#include <cstdint>

namespace valora::kernels {

// What a step reads and writes of one sequence's state: lists of as many pool blocks as a state
// takes (state_layout.h). A step writes `to` and `kept`, and nobody else reads them before it has
// ended.
struct StateSpan {
  static constexpr int kMostKept = 2;
  struct Kept {
    const int32_t* blocks = nullptr;  // null: none
    int64_t after = 0;                // the state after so many tokens of the step
  };

  const int32_t* from = nullptr;          // after the tokens before the step; null: there are none
  const int32_t* to = nullptr;            // after the step's last token; may be `from`
  std::array<Kept, kMostKept> kept = {};  // ascending
};

}  // namespace valora::kernels
