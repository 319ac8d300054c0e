#include "base/machine/core_load.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/machine/cores.h"

namespace valora {
namespace {

// Converts a line "cpuN user nice system idle …" from ticks to the seconds that programs ran.
// Excludes time in interrupts and time stolen by a hypervisor.
std::optional<double> program_seconds(const std::string& line) {
  static const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::istringstream fields(line);
  std::string name;
  double user = 0, nice = 0, system = 0;
  if (!(fields >> name >> user >> nice >> system)) return std::nullopt;
  return (user + nice + system) / ticks;
}

std::optional<double> all_programs(const std::string& path, const std::vector<int>& cpus) {
  std::ifstream file(path);
  double sum = 0;
  size_t found = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.size() < 4 || !line.starts_with("cpu") || line[3] < '0' || line[3] > '9') continue;
    const int cpu = std::atoi(line.c_str() + 3);
    if (!std::ranges::binary_search(cpus, cpu)) continue;
    const auto seconds = program_seconds(line);
    if (!seconds) return std::nullopt;
    sum += *seconds;
    ++found;
  }
  if (found == 0 || found != cpus.size()) return std::nullopt;
  return sum;
}

double own_seconds() {
  timespec time{};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Each thread's file holds "RUN WAIT SLICES", times in nanoseconds. A thread may end while its file
// is read.
double waited_seconds(const std::string& threads) {
  double sum = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator thread(threads, error), end; !error && thread != end;
       thread.increment(error)) {
    std::ifstream file(thread->path() / "schedstat");
    double run = 0, wait = 0;
    if (file >> run >> wait) sum += 1e-9 * wait;
  }
  return sum;
}

}  // namespace

CoreLoadReader::CoreLoadReader(CoreLoadFiles files)
    : files_(std::move(files)), cpus_(cpus_of_affinity()) {}

std::optional<CoreLoad> CoreLoadReader::read() const {
  const auto all = all_programs(files_.stat, cpus_);
  if (!all) return std::nullopt;
  return CoreLoad{*all, own_seconds(), waited_seconds(files_.threads)};
}

}  // namespace valora
