#include "ops/emulated_gpu/faults.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace valora::ops::emulated {
namespace {

struct Wanted {
  Fault fault = Fault::kNone;
  uint64_t at = 0;
};

Wanted wanted() {
  const char* const given = std::getenv("VALORA_EMULATED_GPU_FAULT");
  if (given == nullptr) return {};
  const std::string text = given, kind = text.substr(0, text.find(':'));
  const Fault fault = kind == "refuse"   ? Fault::kRefused
                      : kind == "memory" ? Fault::kNoMemory
                      : kind == "lose"   ? Fault::kLost
                                         : Fault::kNone;
  TORCH_CHECK(fault != Fault::kNone && kind.size() < text.size(),
              "VALORA_EMULATED_GPU_FAULT is refuse:N, memory:N or lose:N, not ", text);
  return {fault, std::strtoull(text.c_str() + kind.size() + 1, nullptr, 10)};
}

std::atomic<bool> lost = false;

}  // namespace

Fault fault_of(Event event) {
  static const Wanted asked = wanted();
  static std::atomic<uint64_t> launches = 0, allocations = 0;
  if (lost) return Fault::kLost;
  const bool launch = event == Event::kLaunch;
  const uint64_t number = ++(launch ? launches : allocations);
  if (number != asked.at || launch == (asked.fault == Fault::kNoMemory)) return Fault::kNone;
  if (asked.fault == Fault::kLost) lost = true;
  return asked.fault;
}

void check_alive() { TORCH_CHECK(!lost, "CUDA error: an illegal memory access was encountered"); }

}  // namespace valora::ops::emulated
