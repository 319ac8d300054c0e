// g++ instruments the kernels for its thread sanitizer (-fsanitize=thread); these functions take
// the place of the sanitizer's library, which knows neither blocks nor their barriers.
#include <cstddef>

#include "kernels/cuda/emulation/block.h"
#include "kernels/cuda/emulation/races/race_check.h"

namespace valora::kernels::cuda::emulation {
namespace {

constexpr ptrdiff_t kNear = 64 << 10;  // of the stack; rejects most local variables at once

[[maybe_unused]] const bool installed = [] {
  static RaceCheck check;
  access_observer() = &check;
  return true;
}();

inline void accessed(const void* begin, size_t bytes, bool writes) {
  if (current_block == nullptr) return;
  const auto* here = static_cast<const std::byte*>(__builtin_frame_address(0));
  const ptrdiff_t above = static_cast<const std::byte*>(begin) - here;
  if (above > -kNear && above < kNear) return;
  access_observer()->accessed(begin, bytes, writes);
}

}  // namespace
}  // namespace valora::kernels::cuda::emulation

using valora::kernels::cuda::emulation::accessed;

#define VALORA_ACCESSES(bytes)                                              \
  void __tsan_read##bytes(void* p) { accessed(p, bytes, false); }           \
  void __tsan_write##bytes(void* p) { accessed(p, bytes, true); }           \
  void __tsan_unaligned_read##bytes(void* p) { accessed(p, bytes, false); } \
  void __tsan_unaligned_write##bytes(void* p) { accessed(p, bytes, true); }

// NOLINTBEGIN(bugprone-reserved-identifier): the names that g++ calls
extern "C" {
VALORA_ACCESSES(1)
VALORA_ACCESSES(2)
VALORA_ACCESSES(4)
VALORA_ACCESSES(8)
VALORA_ACCESSES(16)
void __tsan_read_range(void* p, unsigned long bytes) { accessed(p, bytes, false); }
void __tsan_write_range(void* p, unsigned long bytes) { accessed(p, bytes, true); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
}
// NOLINTEND(bugprone-reserved-identifier)
