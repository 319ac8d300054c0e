// Faults of the emulated GPU, for tests. VALORA_EMULATED_GPU_FAULT is "refuse:N" (launch N is
// refused), "memory:N" (allocation N fails), "graph:N" (capture N finds no memory for its graph,
// after its launches have run) or "lose:N" (launch N reads an illegal address, after which every
// call fails, as on a GPU).
#pragma once

#include <cstdint>

namespace valora::ops::emulated {

enum class Event : uint8_t { kLaunch, kAllocation, kCapture };
enum class Fault : uint8_t { kNone, kRefused, kNoMemory, kLost };

// Counts this event and returns the fault it must suffer.
Fault fault_of(Event event);
// Throws c10::Error if the GPU is lost.
void check_alive();

}  // namespace valora::ops::emulated
