// The order of the calls that capture launches, and which of them must follow a failure. Needs
// neither torch nor a GPU.
#pragma once

namespace valora::ops {

// The calls of a capture. Cleanup calls do not throw.
class CaptureCalls {
 public:
  virtual ~CaptureCalls() = default;

  // Directs allocations to the memory that graphs share, and adds a user to it.
  virtual void begin_memory() = 0;
  virtual void end_memory() noexcept = 0;
  virtual void release_memory() noexcept = 0;  // removes a user

  virtual void begin_launches() = 0;
  // The capture has ended even if this throws.
  virtual void end_launches() = 0;
  virtual void abandon_launches() noexcept = 0;

  virtual void make_graph() = 0;
};

// Captures what launch() launches. If launch() or a call throws, everything that began has been
// ended, and the memory has as many users as before.
template <typename Launch>
void capture_launches(CaptureCalls& calls, Launch&& launch) {
  calls.begin_memory();
  try {
    calls.begin_launches();
    try {
      launch();
    } catch (...) {
      calls.abandon_launches();
      throw;
    }
    calls.end_launches();
  } catch (...) {
    calls.end_memory();
    calls.release_memory();
    throw;
  }
  calls.end_memory();
  try {
    calls.make_graph();
  } catch (...) {
    calls.release_memory();
    throw;
  }
}

}  // namespace valora::ops
