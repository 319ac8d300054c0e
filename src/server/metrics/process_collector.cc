#include "server/metrics/process_collector.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/log/stderr_sink.h"

namespace valora::server {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily family(const char* name, const char* help, MetricType type, double value) {
  MetricFamily out;
  out.name = name;
  out.help = help;
  out.type = type;
  out.metric.emplace_back();
  (type == MetricType::Counter ? out.metric[0].counter.value : out.metric[0].gauge.value) = value;
  return out;
}

// Boot time in Unix time; 0 if unknown.
double boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("btime ")) return std::stod(line.substr(6));
  return 0;
}

double open_files() {
  double count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error))
    ++count;
  return count - 1;  // not counting the one this loop opened
}

}  // namespace

// Fields 14, 15, 22, 23 and 24 of /proc/self/stat (proc(5)). Field 2, the name, may contain spaces.
std::optional<ProcessTimes> ProcessTimes::read() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t name_end = text.rfind(')');
  if (name_end == text.npos) return std::nullopt;
  std::istringstream rest(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) rest >> skipped;
  double user = 0, system = 0, pages = 0, started_ticks = 0;
  ProcessTimes times;
  rest >> user >> system;
  for (int field = 16; field < 22; ++field) rest >> skipped;
  rest >> started_ticks >> times.virtual_bytes >> pages;
  if (!rest) return std::nullopt;
  times.cpu_seconds = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  static const double booted = boot_time();
  times.started = booted + started_ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  times.resident_bytes = pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  return times;
}

std::vector<MetricFamily> ProcessCollector::Collect() const {
  std::vector<MetricFamily> out;
  const auto gauge = [&](const char* name, const char* help, double value) {
    out.push_back(family(name, help, MetricType::Gauge, value));
  };
  if (const auto times = ProcessTimes::read()) {
    out.push_back(family("process_cpu_seconds_total", "User and system CPU time in seconds.",
                         MetricType::Counter, times->cpu_seconds));
    gauge("process_start_time_seconds", "Unix time at which the process started.", times->started);
    gauge("process_virtual_memory_bytes", "Virtual memory in bytes.", times->virtual_bytes);
    gauge("process_resident_memory_bytes", "Resident memory in bytes.", times->resident_bytes);
  }
  out.push_back(family("valora:log_lines_lost_total",
                       "Lines of the log that nothing took: its reader has left, stands still, or "
                       "the disk is full.",
                       MetricType::Counter, static_cast<double>(StderrSink::of_process()->lost())));
  gauge("process_open_fds", "Open file descriptors.", open_files());
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0)
    gauge("process_max_fds", "Highest number of open file descriptors.",
          static_cast<double>(files.rlim_cur));
  return out;
}

}  // namespace valora::server
