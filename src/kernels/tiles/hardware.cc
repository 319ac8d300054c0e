#include "kernels/tiles/hardware.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/digest.h"
#include "kernels/cpu/isa/isa.h"

namespace valora::kernels {
namespace {

// The value of the first line "key\t: value".
std::string field(const std::string& cpuinfo, std::string_view key) {
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.find_last_not_of(" \t", colon - 1) + 1 != key.size() ||
        !line.starts_with(key))
      continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

// Decimal or, as ARM's kernels write it, 0x and hexadecimal.
int64_t number(const std::string& text) { return std::strtoll(text.c_str(), nullptr, 0); }

// Parses "32K", "1M" or a plain number of bytes.
int64_t bytes(const std::string& text) {
  char* end = nullptr;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  return *end == 'K' ? value << 10 : *end == 'M' ? value << 20 : value;
}

// Reads until end of file: files in /proc and /sys report no size.
std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The size of the first core's data or unified cache at a level.
std::string cache_size(char level) {
  for (int i = 0; i < 8; ++i) {
    const std::string dir = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i);
    if (text_of(dir + "/level").starts_with(level) &&
        !text_of(dir + "/type").starts_with("Instruction"))
      return text_of(dir + "/size");
  }
  return "";
}

}  // namespace

std::string Hardware::digest() const { return digest_of(text()).hex().substr(0, 16); }

std::string Hardware::text() const {
  return name + " (" + vendor + " " + std::to_string(family) + "/" + std::to_string(model) + ", " +
         isa + ", L1 " + std::to_string(l1 >> 10) + " KiB, L2 " + std::to_string(l2 >> 10) +
         " KiB)";
}

Hardware parse_hardware(const std::string& cpuinfo, const std::string& l1, const std::string& l2) {
  Hardware h;
  if (const std::string arm = field(cpuinfo, "CPU implementer"); !arm.empty()) {
    h.name = "ARM CPU, part " + field(cpuinfo, "CPU part");
    h.vendor = "implementer " + arm;
    h.family = number(field(cpuinfo, "CPU part"));
    h.model = number(field(cpuinfo, "CPU variant"));
  } else {
    h.name = field(cpuinfo, "model name");
    h.vendor = field(cpuinfo, "vendor_id");
    h.family = number(field(cpuinfo, "cpu family"));
    h.model = number(field(cpuinfo, "model"));
  }
  h.isa = isa_name(supported_isas().front());
  h.l1 = bytes(l1);
  h.l2 = bytes(l2);
  return h;
}

const char* arch_name(CudaArch arch) {
  switch (arch) {
    case CudaArch::kSm80: return "sm_80";
    case CudaArch::kSm86: return "sm_86";
    case CudaArch::kSm89: return "sm_89";
    case CudaArch::kSm90: return "sm_90";
    case CudaArch::kSm120: break;
  }
  return "sm_120";
}

Hardware gpu_hardware(const std::string& name, int capability, int64_t shared, int64_t l2) {
  return {.device = Device::kCuda,
          .name = name,
          .vendor = "NVIDIA",
          .family = capability / 10,
          .model = capability % 10,
          .isa = arch_name(arch_of(capability)),
          .l1 = shared,
          .l2 = l2};
}

const Hardware& this_hardware() {
  static const Hardware hardware =
      parse_hardware(text_of("/proc/cpuinfo"), cache_size('1'), cache_size('2'));
  return hardware;
}

}  // namespace valora::kernels
