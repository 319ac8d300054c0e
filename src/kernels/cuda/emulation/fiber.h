// A separate stack that is entered and left at chosen points. Sanitizers are notified of each
// switch.
#pragma once

#include <cstddef>

namespace valora::kernels::cuda::emulation {

// Must be used on the host thread that created it. Overflowing its stack ends the program.
class Fiber {
 public:
  struct Host {};
  Fiber();
  // Represents the stack of the calling host thread.
  explicit Fiber(Host);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  // Prepares the fiber to start at `entry`, which must call began() first and never return.
  void reset(void (*entry)());
  void began();
  // Called on this fiber's stack: continues `to`, and returns when some fiber switches back.
  void switch_to(Fiber& to);
  // The same, but this fiber must not run again before reset().
  [[noreturn]] void end(Fiber& to);

 private:
  static constexpr size_t kStackBytes = 256 << 10;
  void leave(Fiber& to, bool last);

  std::byte* mapped_ = nullptr;
  void* saved_ = nullptr;  // stack pointer while the fiber is not running
  // Only for sanitizers.
  const void* stack_ = nullptr;
  size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;
  void* thread_fiber_ = nullptr;
};

}  // namespace valora::kernels::cuda::emulation
