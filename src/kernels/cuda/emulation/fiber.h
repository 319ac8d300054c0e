// A stack of its own that is entered and left at chosen points. The sanitizers know of each switch.
#pragma once

#include <cstddef>

namespace valora::kernels::cuda::emulation {

// Used by the host thread that made it. A step beyond the end of its stack ends the program.
class Fiber {
 public:
  struct Host {};
  Fiber();
  // Stands for the stack of the host thread that calls.
  explicit Fiber(Host);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  // Sets it to the begin of `entry`, which must call began() first and never return.
  void reset(void (*entry)());
  void began();
  // Called on this fiber's stack: continues `to`, and returns when some fiber switches back.
  void switch_to(Fiber& to);
  // The same, but this fiber does not run again before reset().
  [[noreturn]] void end(Fiber& to);

 private:
  static constexpr size_t kStackBytes = 256 << 10;
  void leave(Fiber& to, bool last);

  std::byte* mapped_ = nullptr;
  void* saved_ = nullptr;  // stack pointer while another one runs
  // For the sanitizers.
  const void* stack_ = nullptr;
  size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;
  void* thread_fiber_ = nullptr;
};

}  // namespace valora::kernels::cuda::emulation
