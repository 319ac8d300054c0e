// Limits that control groups (cgroups v1 and v2: containers, systemd units) set on this process. A
// group's limits hold for all groups below it, so its own group and all above it count.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace valora {

struct CpuQuota {
  double cpus = 0;   // CPU time per time
  std::string file;  // which sets it
};

struct MemoryLimit {
  int64_t bytes = 0;
  int64_t left = 0;  // bytes that may still be taken; the page cache counts as free. At least 0
  std::string file;  // which sets it
};

// root: the folder that holds /proc and /sys; "" but in tests. Absent: no group has such a limit,
// or the kernel does not tell.
std::optional<CpuQuota> cpu_quota(const std::string& root = {});  // the lowest
// The limit that leaves the least.
std::optional<MemoryLimit> memory_limit(const std::string& root = {});

}  // namespace valora
