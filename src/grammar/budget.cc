#include "grammar/budget.h"

#include <malloc.h>
#include <time.h>

#include <cstdlib>
#include <exception>
#include <utility>

#include "grammar/budget_poll.h"

namespace valora::grammar {
namespace {

thread_local Budget* budget = nullptr;

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

Budget::Budget(BudgetLimits limits, std::stop_token stop)
    : limits_(limits), stop_(std::move(stop)), started_(thread_seconds()) {
  budget = this;
}

Budget::~Budget() { budget = nullptr; }

Budget::Pause::Pause() : paused_(std::exchange(budget, nullptr)) {}

Budget::Pause::~Pause() { budget = paused_; }

void poll_budget() {
  if (budget != nullptr) budget->poll();
}

void Budget::poll() {
  if (is_time_to_look() && std::uncaught_exceptions() == 0) look();
}

void Budget::look() {
  const bool stopped = stop_.stop_requested();
  if (!stopped && thread_seconds() - started_ <= limits_.cpu_seconds) return;
  --calls_;  // the next call looks again, in case this exception is swallowed
  throw BudgetExceeded(stopped ? BudgetExceeded::Limit::kStop : BudgetExceeded::Limit::kTime);
}

void Budget::charge(int64_t bytes) {
  const bool looks = is_time_to_look();
  if (std::uncaught_exceptions() == 0) {
    if (used_ + bytes > limits_.bytes) throw BudgetExceeded(BudgetExceeded::Limit::kMemory);
    if (looks) look();
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
