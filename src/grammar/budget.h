// Limits what third-party code may use on the thread that runs it: memory allocated by `operator
// new` and not yet freed, and the thread's CPU time. Over a limit, or once a stop is requested,
// `operator new` and poll_budget() throw BudgetExceeded. For this, the global operators are
// replaced; on other threads this costs a test of one thread-local pointer.
#pragma once

#include <cstdint>
#include <new>
#include <stop_token>

namespace valora::grammar {

// CPU time of this thread.
double thread_seconds();

struct BudgetLimits {
  int64_t bytes = 0;
  double cpu_seconds = 0;
};

class BudgetExceeded final : public std::bad_alloc {
 public:
  enum class Limit { kMemory, kTime, kStop };
  explicit BudgetExceeded(Limit limit) : limit_(limit) {}
  Limit limit() const { return limit_; }
  const char* what() const noexcept override { return "the budget is exceeded"; }

 private:
  Limit limit_;
};

// Applies to this thread from construction to destruction. Not nestable.
class Budget {
 public:
  explicit Budget(BudgetLimits limits, std::stop_token stop = {});
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Called by poll_budget() and the operators. Throw unless an exception is in flight.
  void poll();
  void charge(int64_t bytes);
  void give_back(int64_t bytes) { used_ -= bytes; }
  int64_t used() const { return used_; }  // less than 0 if more was freed than allocated

  // Suspends charging during its lifetime, for code that must not throw.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Budget* paused_;
  };

 private:
  bool is_time_to_look() { return ++calls_ % kCallsPerLook == 0; }
  void look();

  // Number of calls between two looks at the clock, each of which takes some 200 ns.
  static constexpr uint32_t kCallsPerLook = 256;

  BudgetLimits limits_;
  std::stop_token stop_;
  double started_;
  int64_t used_ = 0;
  uint32_t calls_ = 0;
};

}  // namespace valora::grammar
