#include "ops/emulated_gpu/counts.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace valora::ops::emulated {
namespace {

void write_report() {
  const char* const path = std::getenv("VALORA_EMULATED_GPU_REPORT");
  std::FILE* const file = path != nullptr ? std::fopen(path, "w") : nullptr;
  if (file == nullptr) return;
  fmt::print(file, "{}\n", report());
  (void)std::fclose(file);
}

}  // namespace

std::string report() {
  const Counts& c = counts();
  return fmt::format(
      R"({{"launches": {}, "operations": {}, "bytes_to_gpu": {}, "bytes_to_host": {}, )"
      R"("captures": {}, "replays": {}, "allocations": {}, "most_bytes": {}, "operation_seconds": {}}})",
      c.launches.load(), c.operations.load(), c.bytes_to_gpu.load(), c.bytes_to_host.load(),
      c.captures.load(), c.replays.load(), c.allocations.load(), c.most_bytes.load(),
      1e-9 * static_cast<double>(c.operation_nanoseconds.load()));
}

Counts& counts() {
  static Counts all;
  [[maybe_unused]] static const int registered = std::atexit(&write_report);
  return all;
}

}  // namespace valora::ops::emulated
