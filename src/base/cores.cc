#include "base/cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

namespace valora {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Hardware threads of one core list the same siblings.
int cores_of_affinity(const std::string& cpus) {
  std::set<std::string> cores;
  for (const int cpu : cpus_of_affinity()) {
    const std::string number = std::to_string(cpu);
    const std::string siblings =
        first_line(cpus + "/cpu" + number + "/topology/thread_siblings_list");
    cores.insert(siblings.empty() ? number : siblings);
  }
  return static_cast<int>(cores.size());
}

// "QUOTA PERIOD" in microseconds, or "max PERIOD".
int cores_of_quota(const std::string& path) {
  std::ifstream file(path);
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return CPU_SETSIZE;
  return static_cast<int>(std::min<double>(CPU_SETSIZE, std::ceil(quota / period)));
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

int usable_cores(const CoreFiles& files) {
  return std::max(1, std::min(cores_of_affinity(files.cpus), cores_of_quota(files.quota)));
}

}  // namespace valora
