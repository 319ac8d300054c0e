// The state that a sequence of the flat batch has besides its KV, in pool blocks.
#pragma once

#include <array>
#include <cstdint>

namespace valora::kernels {

// What a step reads and writes of one sequence's state. Each list has as many pool blocks as a
// state takes (state_layout.h). A step writes `to` and `kept`, which nothing else reads before the
// step has ended.
struct StateSpan {
  static constexpr int kMostKept = 2;
  struct Kept {
    const int32_t* blocks = nullptr;  // null: none
    int64_t after = 0;                // tokens of the step that the state includes
  };

  const int32_t* from = nullptr;          // state before the step; null: there is none
  const int32_t* to = nullptr;            // state after the step's last token; may equal `from`
  std::array<Kept, kMostKept> kept = {};  // ascending
};

}  // namespace valora::kernels
