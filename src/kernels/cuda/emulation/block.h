// A thread block on the host: one fiber per thread. Warp operations and barriers are the points
// where threads meet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "kernels/cuda/emulation/fiber.h"
#include "kernels/cuda/emulation/shared_memory.h"
#include "kernels/cuda/emulation/toolkit/vector_types.h"

namespace valora::kernels::cuda::emulation {

inline constexpr unsigned kLanes = 32, kMostThreads = 1024;

// A launch. body calls the kernel with its arguments.
struct Launch {
  const void* kernel = nullptr;
  dim3 grid, block;
  size_t shared_bytes = 0;  // dynamic
  std::function<void()> body;
  bool waits = false;  // threads must wait for the previous launch
};

// A copy of 16 bytes.
struct Copy {
  uint32_t to;
  const void* from;  // null: zeros
};

// An operation that all lanes of a warp must execute together.
enum class Meeting : uint8_t { kNone, kSync, kShuffle, kMma, kLoadMatrices, kLoadTransposed };
using Lanes = std::array<void*, kLanes>;

class Block {
 public:
  Block() : host_(Fiber::Host{}) {}
  void run(const Launch& launch, uint3 index);

  // Called from the running thread.
  const uint3& thread_index() const { return running_->index; }
  const uint3& index() const { return index_; }
  const Launch& call() const { return *launch_; }
  void barrier();
  void wait_for_earlier_launch() { running_->waited = true; }
  // The last lane to arrive calls `all` with the arguments of all lanes.
  void meet(Meeting what, void* argument, void (*all)(const Lanes&));
  std::byte* dynamic_shared() { return shared_.dynamic(); }
  std::byte* static_shared(const void* declaration, size_t bytes) {
    return shared_.declared(declaration, bytes);
  }
  void read_shared(uint32_t address) { shared_.read(address, now()); }
  // cp.async: the copy is performed only when the thread waits for it.
  void copy_later(Copy copy);
  void commit_copies();
  void wait_copies(int pending);
  Moment now() const;

 private:
  struct Thread {
    Fiber fiber;
    uint3 index{};
    bool done = false, at_barrier = false, waited = false;
    std::vector<Copy> copies;    // those before `completed` have been performed
    std::vector<size_t> groups;  // the ends of committed groups
    size_t completed = 0, completed_groups = 0;
  };
  struct Warp {
    Meeting meeting = Meeting::kNone;
    unsigned arrived = 0, alive = 0;
    uint32_t ready = 0;  // lanes that are able to run
    uint64_t syncs = 0;
    unsigned rank = 0;  // position in an unfair schedule
    Lanes arguments{};
  };

  static void run_thread();
  void begin(const Launch& launch, uint3 index);
  void finish() const;
  void end_thread();
  void make_ready(unsigned thread);
  void release_barrier();
  // The fiber to continue: that of a thread that is able to run, or else the host's.
  Fiber& next();
  unsigned choose_warp();
  unsigned choose_lane(uint32_t ready);
  void pass_on();

  const Launch* launch_ = nullptr;
  uint3 index_{};
  const void* last_kernel_ = nullptr;
  size_t last_dynamic_bytes_ = 0;
  SharedMemory shared_;
  Fiber host_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::array<Warp, kMostThreads / kLanes> warps_;
  uint32_t ready_warps_ = 0;  // warps with a lane that is able to run
  unsigned count_ = 0, alive_ = 0, waiting_ = 0, current_warp_ = 0;
  uint64_t barriers_ = 1;
  Thread* running_ = nullptr;
  std::minstd_rand random_;
};

// The running block; null outside launches.
extern Block* current_block;

}  // namespace valora::kernels::cuda::emulation
