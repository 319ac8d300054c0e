#include "base/machine/cores.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "base/machine/control_groups.h"

namespace valora {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::vector<int> cpus_of_affinity() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  return cpus;
}

// Hardware threads of one core list the same siblings.
int cores_of_affinity(const std::string& root) {
  std::set<std::string> cores;
  for (const int cpu : cpus_of_affinity()) {
    const std::string number = std::to_string(cpu);
    const std::string siblings = first_line(root + "/sys/devices/system/cpu/cpu" + number +
                                            "/topology/thread_siblings_list");
    cores.insert(siblings.empty() ? number : siblings);
  }
  return std::max(1, static_cast<int>(cores.size()));
}

int usable_cores(const std::string& root) {
  const auto quota = cpu_quota(root);
  const double most = quota ? std::min<double>(CPU_SETSIZE, quota->cpus) : CPU_SETSIZE;
  return std::max(1, std::min(cores_of_affinity(root), static_cast<int>(most)));
}

}  // namespace valora
