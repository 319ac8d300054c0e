#include "ops/emulated_gpu/faults.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace valora::ops::emulated {
namespace {

struct Wanted {
  std::string_view name;
  Fault fault = Fault::kNone;
  Event event = Event::kLaunch;
  uint64_t at = 0;
};
constexpr Wanted kFaults[] = {
    {.name = "refuse", .fault = Fault::kRefused, .event = Event::kLaunch},
    {.name = "memory", .fault = Fault::kNoMemory, .event = Event::kAllocation},
    {.name = "graph", .fault = Fault::kNoMemory, .event = Event::kCapture},
    {.name = "lose", .fault = Fault::kLost, .event = Event::kLaunch},
};

Wanted wanted() {
  const char* const given = std::getenv("VALORA_EMULATED_GPU_FAULT");
  if (given == nullptr) return {};
  const std::string_view text = given, name = text.substr(0, text.find(':'));
  for (Wanted known : kFaults) {
    if (name != known.name || name.size() == text.size()) continue;
    known.at = std::strtoull(given + name.size() + 1, nullptr, 10);
    return known;
  }
  TORCH_CHECK(false, "VALORA_EMULATED_GPU_FAULT is refuse:N, memory:N, graph:N or lose:N, not ",
              given);
}

std::atomic<bool> lost = false;

}  // namespace

Fault fault_of(Event event) {
  static const Wanted asked = wanted();
  static std::atomic<uint64_t> seen = 0;  // events of the wanted kind
  if (lost) return Fault::kLost;
  if (event != asked.event || ++seen != asked.at) return Fault::kNone;
  if (asked.fault == Fault::kLost) lost = true;
  return asked.fault;
}

void check_alive() { TORCH_CHECK(!lost, "CUDA error: an illegal memory access was encountered"); }

}  // namespace valora::ops::emulated
