// Which steps are captured as CUDA graphs.
#pragma once

#include <cstdint>

namespace valora {

enum class Captured : uint8_t {
  kNone,
  kDecodes,  // steps of one token per sequence, of kinds that steps have had
  kSeen,     // steps of kinds that steps have had
  kAll       // these, and likely ones ahead
};

// As VALORA_GPU_CAPTURE says, for comparisons: none, decode, seen or all, which is the default.
Captured wanted_captures();

}  // namespace valora
