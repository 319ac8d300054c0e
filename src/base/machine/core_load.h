// How much other programs use this process's CPUs, and how long its own threads wait for a CPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace valora {

struct CoreLoadFiles {
  std::string stat = "/proc/stat";          // CPU times by kind
  std::string threads = "/proc/self/task";  // one folder per thread of this process
};

// CPU seconds since an arbitrary start: only differences of two readings mean anything.
struct CoreLoad {
  double all = 0;     // spent by all programs, on the CPUs of this process's affinity
  double own = 0;     // spent by this process
  double waited = 0;  // its threads were ready to run but had no CPU; 0 if the kernel does not say
};

class CoreLoadReader {
 public:
  explicit CoreLoadReader(CoreLoadFiles files = {});
  // CPUs in the affinity mask when the reader was constructed.
  int cpus() const { return static_cast<int>(cpus_.size()); }
  // nullopt if the kernel does not report CPU times.
  std::optional<CoreLoad> read() const;

 private:
  CoreLoadFiles files_;
  std::vector<int> cpus_;  // ascending
};

}  // namespace valora
