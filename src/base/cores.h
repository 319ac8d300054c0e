// The processor cores that this process may use.
#pragma once

#include <string>
#include <vector>

namespace valora {

struct CoreFiles {
  std::string cpus = "/sys/devices/system/cpu";  // the kernel's folder of CPUs
  std::string quota = "/sys/fs/cgroup/cpu.max";  // of a control group, version 2
};

// Numbers of the CPUs (hardware threads) of the process's affinity, ascending; empty if the kernel
// does not say.
std::vector<int> cpus_of_affinity();

// Cores, not hardware threads, of the process's affinity; at most its CPU quota, rounded up. What
// the files do not tell is taken as one thread per core, and no quota.
int usable_cores(const CoreFiles& files = {});

}  // namespace valora
