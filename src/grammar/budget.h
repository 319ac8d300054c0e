// Limits what third-party code may use on the thread that runs it: memory allocated by `operator
// new` and not yet freed, and the thread's CPU time. Over a limit, `operator new` throws
// BudgetExceeded. For this, the global operators are replaced; on other threads this costs a test
// of one thread-local pointer.
#pragma once

#include <cstdint>
#include <new>

namespace valora::grammar {

// CPU time of this thread.
double thread_seconds();

struct BudgetLimits {
  int64_t bytes = 0;
  double cpu_seconds = 0;
};

class BudgetExceeded final : public std::bad_alloc {
 public:
  explicit BudgetExceeded(bool time) : time_(time) {}
  const char* what() const noexcept override { return time_ ? "time" : "memory"; }

 private:
  bool time_;
};

// Applies to this thread from construction to destruction. Not nestable.
class Budget {
 public:
  explicit Budget(BudgetLimits limits);
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Called by the operators. Throws unless an exception is in flight.
  void charge(int64_t bytes);
  void give_back(int64_t bytes) { used_ -= bytes; }

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
  BudgetLimits limits_;
  double started_;
  int64_t used_ = 0;
  uint32_t calls_ = 0;
};

}  // namespace valora::grammar
