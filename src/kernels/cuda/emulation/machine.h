// The emulated GPU: its limits, and the order in which the threads of a block take turns.
#pragma once

#include <cstdint>
#include <string>

namespace valora::kernels::cuda::emulation {

enum class Schedule : uint8_t {
  kForward,   // threads and blocks in order
  kBackward,  // in reverse order
  kRandom,    // any thread that is able to run, at each meeting point
  kUnfair,    // warps in a random order, each running as far as it can before the next one
};

struct Machine {
  int capability = 90;
  int multiprocessors = 132;
  int block_shared_bytes = 227 << 10;  // limit per thread block
  Schedule schedule = Schedule::kForward;
  uint64_t seed = 1;
};

// The machine in use. Launches read it, so change it only between launches.
inline Machine& machine() {
  static constinit Machine machine;
  return machine;
}
// Sets the limits of compute capability 80, 86, 89, 90 or 120; → false for any other.
bool choose_gpu(int capability);

struct Launch;
// Called on the launching thread before each launch. A positive result refuses it, a negative one
// leaves it out. Null: no observer.
using LaunchObserver = int (*)(const Launch&);
inline LaunchObserver& before_launch() {
  static constinit LaunchObserver observer = nullptr;
  return observer;
}

// Ends the program with a message on stderr, which also names the kernel, block and thread if one
// is running.
[[noreturn]] void fail(const std::string& what);

}  // namespace valora::kernels::cuda::emulation
