// Bounds what code of others may take, on the thread that runs it: the memory that `operator new`
// gives it and has not got back, and the thread's CPU time. Over a bound, `operator new` throws
// BudgetExceeded. This room replaces the global operators for it; on other threads they cost a
// test of one thread-local pointer.
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

// Applies to this thread from its construction to its destruction. Not nested.
class Budget {
 public:
  explicit Budget(BudgetLimits limits);
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // For the operators. Throws unless an exception is in flight.
  void charge(int64_t bytes);
  void give_back(int64_t bytes) { used_ -= bytes; }

  // While one exists, nothing is charged: for code that must not throw.
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
