#include "base/testing/allocation_faults.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace valora::testing {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

std::atomic<bool> armed = false, lasts = false, has_struck = false;
std::atomic<int64_t> left = kNever;  // allocations before the one that fails
thread_local int spared = 0;

}  // namespace

bool allocation_fails() {
  if (!armed.load(std::memory_order_relaxed) || spared > 0) return false;
  const int64_t before = left.fetch_sub(1);
  if (before > 0 || (before < 0 && !lasts)) return false;
  has_struck = true;
  return true;
}

namespace {

void* allocate(size_t size, size_t alignment) noexcept {
  if (allocation_fails()) return nullptr;
  if (size == 0) size = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(size_t size, size_t alignment) {
  void* memory = allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

AllocationFault::AllocationFault(uint64_t n, bool lasting) : n_(n) {
  left = static_cast<int64_t>(n);
  lasts = lasting;
  has_struck = false;
  armed = true;
}

AllocationFault::~AllocationFault() { armed = false; }

bool AllocationFault::struck() const { return has_struck; }
uint64_t AllocationFault::seen() const { return n_ - static_cast<uint64_t>(left.load()); }

SparedThread::SparedThread() { ++spared; }
SparedThread::~SparedThread() { --spared; }

}  // namespace valora::testing

using valora::testing::allocate;
using valora::testing::allocate_or_throw;

void* operator new(size_t size) { return allocate_or_throw(size, 1); }
void* operator new[](size_t size) { return allocate_or_throw(size, 1); }
void* operator new(size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

// If a JSON value runs out of memory while it is being constructed, its tree leaks: until then, the
// library holds it by a raw pointer.
extern "C" const char* __lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions() { return "leak:nlohmann\n"; }  // NOLINT
