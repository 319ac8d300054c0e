// The GPU that is emulated: its limits, and how the threads of a block take turns.
#pragma once

#include <cstdint>
#include <string>

namespace valora::kernels::cuda::emulation {

enum class Schedule : uint8_t {
  kForward,   // threads and blocks in order
  kBackward,  // in reverse order
  kRandom,    // any thread that can run, at each meeting point
  kUnfair,    // the first warp of a random order runs as far as it can, then the next one
};

struct Machine {
  int capability = 90;
  int multiprocessors = 132;
  int block_shared_bytes = 227 << 10;  // that a thread block can ask for
  Schedule schedule = Schedule::kForward;
  uint64_t seed = 1;
};

// The machine in use. Launches read it, so it changes only between them.
inline Machine& machine() {
  static constinit Machine machine;
  return machine;
}
// Limits of compute capability 80, 86, 89, 90 or 120; → false for another.
bool choose_gpu(int capability);

struct Launch;
// Called on the launching thread before each launch; another status than 0 refuses it. Null:
// nobody.
using LaunchObserver = int (*)(const Launch&);
inline LaunchObserver& before_launch() {
  static constinit LaunchObserver observer = nullptr;
  return observer;
}

// Ends the program with a message on stderr that names the kernel, block and thread, if called in
// one.
[[noreturn]] void fail(const std::string& what);

}  // namespace valora::kernels::cuda::emulation
