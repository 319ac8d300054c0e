// The hardware on which a tile table was measured.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/types/processor.h"

namespace valora::kernels {

struct Hardware {
  Device device = Device::kCpu;
  std::string name;               // as reported by the system or the driver
  std::string vendor;             // "AuthenticAMD", "NVIDIA"
  int64_t family = 0, model = 0;  // GPU: its compute capability
  std::string isa;  // the CPU's best instruction set (cpu/isa/isa.h) or the GPU's architecture
  // CPU: bytes of data cache per core. GPU: bytes of shared memory per thread block, and of L2
  // cache.
  int64_t l1 = 0, l2 = 0;

  friend bool operator==(const Hardware&, const Hardware&) = default;
  // True if tiles for one also suit the other. Ignores names and model numbers, which hypervisors
  // may change.
  bool same_kind(const Hardware& other) const {
    return device == other.device && vendor == other.vendor && isa == other.isa && l1 == other.l1 &&
           l2 == other.l2;
  }
  std::string digest() const;  // 16 hexadecimal digits, for file names
  // "AMD EPYC (AuthenticAMD 25/17, avx512bf16, L1 32 KiB, L2 1024 KiB)"
  std::string text() const;
};

// cpuinfo: the text of /proc/cpuinfo. l1, l2: cache sizes of the first core from /sys ("32K").
Hardware parse_hardware(const std::string& cpuinfo, const std::string& l1, const std::string& l2);
// The CPU of this machine. Unknown fields are empty or 0.
const Hardware& this_hardware();
// A GPU. capability: 90 for 9.0.
Hardware gpu_hardware(const std::string& name, int capability, int64_t shared, int64_t l2);
// As in tile files, for example "sm_90".
const char* arch_name(CudaArch arch);

}  // namespace valora::kernels
