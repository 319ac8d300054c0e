#include "grammar/budget.h"

#include <malloc.h>
#include <time.h>

#include <cstdlib>
#include <exception>
#include <utility>

namespace valora::grammar {
namespace {

thread_local Budget* budget = nullptr;

// Number of allocations between two checks of the clock, which takes some 200 ns.
constexpr uint32_t kCallsPerLook = 256;

void* allocate(size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  if (budget == nullptr) return memory;
  try {
    budget->charge(static_cast<int64_t>(malloc_usable_size(memory)));
  } catch (...) {
    std::free(memory);
    throw;
  }
  return memory;
}

void* allocate_or_null(size_t size) noexcept {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory != nullptr && budget != nullptr)
    budget->give_back(-static_cast<int64_t>(malloc_usable_size(memory)));
  return memory;
}

void release(void* memory) noexcept {
  if (memory == nullptr) return;
  if (budget != nullptr) budget->give_back(static_cast<int64_t>(malloc_usable_size(memory)));
  std::free(memory);
}

}  // namespace

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Budget::Budget(BudgetLimits limits) : limits_(limits), started_(thread_seconds()) { budget = this; }

Budget::~Budget() { budget = nullptr; }

Budget::Pause::Pause() : paused_(std::exchange(budget, nullptr)) {}

Budget::Pause::~Pause() { budget = paused_; }

void Budget::charge(int64_t bytes) {
  const bool look = ++calls_ % kCallsPerLook == 0;
  if (std::uncaught_exceptions() > 0) {
    used_ += bytes;
    return;
  }
  if (used_ + bytes > limits_.bytes) throw BudgetExceeded(false);
  if (look && thread_seconds() - started_ > limits_.cpu_seconds) {
    --calls_;  // the next allocation checks again, in case this exception is swallowed
    throw BudgetExceeded(true);
  }
  used_ += bytes;
}

}  // namespace valora::grammar

void* operator new(size_t size) { return valora::grammar::allocate(size); }
void* operator new[](size_t size) { return valora::grammar::allocate(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return valora::grammar::allocate_or_null(size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return valora::grammar::allocate_or_null(size);
}
void operator delete(void* memory) noexcept { valora::grammar::release(memory); }
void operator delete[](void* memory) noexcept { valora::grammar::release(memory); }
void operator delete(void* memory, size_t) noexcept { valora::grammar::release(memory); }
void operator delete[](void* memory, size_t) noexcept { valora::grammar::release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  valora::grammar::release(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  valora::grammar::release(memory);
}
