// The CPU cores that this process may use.
#pragma once

#include <string>
#include <vector>

namespace valora {

struct CoreFiles {
  std::string cpus = "/sys/devices/system/cpu";  // the kernel's folder of CPUs
  std::string quota = "/sys/fs/cgroup/cpu.max";  // the cgroup v2 CPU quota
};

// Numbers of the CPUs (hardware threads) in the process's affinity mask, ascending; empty if the
// kernel does not report them.
std::vector<int> cpus_of_affinity();

// Cores, not hardware threads, in the process's affinity mask, but at most its CPU quota, rounded
// up. If files are missing, assumes one thread per core and no quota.
int usable_cores(const CoreFiles& files = {});

}  // namespace valora
