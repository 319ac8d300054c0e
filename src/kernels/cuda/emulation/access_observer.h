// Is told what kernels do to memory, by a program that checks their accesses (races/).
#pragma once

#include <cstddef>

namespace valora::kernels::cuda::emulation {

class AccessObserver {
 public:
  virtual ~AccessObserver() = default;

  // shared: the shared memory of blocks, else global memory. Other memory is not observed.
  virtual void memory_began(const void* begin, size_t bytes, bool shared) = 0;
  virtual void memory_ended(const void* begin) = 0;
  virtual void launch_began() = 0;
  virtual void block_began() = 0;
  // By the running thread.
  virtual void accessed(const void* begin, size_t bytes, bool writes) = 0;
  // The running thread increments a counter of its launch, which orders blocks (device/mma.cuh).
  virtual void counted(const void* counter) = 0;
};

// Null: nobody observes. Set before the first launch and the first allocation.
inline AccessObserver*& access_observer() {
  static constinit AccessObserver* observer = nullptr;
  return observer;
}

}  // namespace valora::kernels::cuda::emulation
