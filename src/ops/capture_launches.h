// The order in which a capture of launches begins and ends, and what must end whatever fails. Needs
// neither torch nor a GPU.
#pragma once

namespace valora::ops {

// The calls of a capture. What ends something does not throw.
class CaptureCalls {
 public:
  virtual ~CaptureCalls() = default;

  // What is allocated from now on is in the memory of graphs, which has one more user.
  virtual void begin_memory() = 0;
  virtual void end_memory() noexcept = 0;
  virtual void release_memory() noexcept = 0;  // one user less

  virtual void begin_launches() = 0;
  // If it throws, the capture has ended all the same.
  virtual void end_launches() = 0;
  virtual void abandon_launches() noexcept = 0;

  virtual void make_graph() = 0;
};

// launch(): the launches. If it or a call throws, nothing has begun that did not end, and the
// memory has as many users as before.
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
