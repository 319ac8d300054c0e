// The CPU cores that this process may use.
#pragma once

#include <string>
#include <vector>

namespace valora {

// Numbers of the CPUs (hardware threads) in the process's affinity mask, ascending; empty if the
// kernel does not report them.
std::vector<int> cpus_of_affinity();

// Cores, not hardware threads, in the process's affinity mask; one per thread if the kernel does
// not tell. root: the folder that holds /sys; "" but in tests.
int cores_of_affinity(const std::string& root = {});
// The same, but at most the CPU quota of its control groups. A quota of 1.5 gives 1: with one
// thread more, the kernel would stop all of them for a part of each period.
int usable_cores(const std::string& root = {});

}  // namespace valora
