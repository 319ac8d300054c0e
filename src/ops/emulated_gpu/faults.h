// Faults of the emulated GPU that tests ask for: VALORA_EMULATED_GPU_FAULT is "refuse:N" (launch N
// is refused), "memory:N" (allocation N finds no memory) or "lose:N" (launch N reads an illegal
// address, after which every call fails, as on a GPU).
#pragma once

#include <cstdint>

namespace valora::ops::emulated {

enum class Event : uint8_t { kLaunch, kAllocation };
enum class Fault : uint8_t { kNone, kRefused, kNoMemory, kLost };

// What happens to this one. Each call counts as an event.
Fault fault_of(Event event);
// Throws c10::Error if the GPU is lost.
void check_alive();

}  // namespace valora::ops::emulated
