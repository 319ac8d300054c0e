// How busy other programs keep this process's CPUs, and how long its own threads wait for one.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace valora {

struct CoreLoadFiles {
  std::string stat = "/proc/stat";          // time of each CPU by kind
  std::string threads = "/proc/self/task";  // a folder per thread of this process
};

// CPU seconds since some fixed time. Differences of two readings count.
struct CoreLoad {
  double all = 0;     // spent by all programs, on the CPUs of this process's affinity
  double own = 0;     // spent by this process
  double waited = 0;  // its threads were ready to run but had no CPU; 0 if the kernel does not say
};

class CoreLoadReader {
 public:
  explicit CoreLoadReader(CoreLoadFiles files = {});
  // CPUs of the affinity when the reader was made.
  int cpus() const { return static_cast<int>(cpus_.size()); }
  // nullopt if the kernel does not say what its CPUs do.
  std::optional<CoreLoad> read() const;

 private:
  CoreLoadFiles files_;
  std::vector<int> cpus_;  // ascending
};

}  // namespace valora
