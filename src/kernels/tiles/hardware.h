// The hardware that a tile table was measured on.
#pragma once

#include <cstdint>
#include <string>

namespace valora::kernels {

struct Hardware {
  std::string cpu;     // model name as the system reports it
  std::string vendor;  // "AuthenticAMD"
  int64_t family = 0, model = 0;
  std::string isa;         // its best instruction set (cpu/isa/isa.h)
  int64_t l1 = 0, l2 = 0;  // bytes of data cache per core

  friend bool operator==(const Hardware&, const Hardware&) = default;
  // Whether tiles of one also suit the other. Ignores names and model numbers, which hypervisors
  // may change.
  bool same_kind(const Hardware& other) const {
    return vendor == other.vendor && isa == other.isa && l1 == other.l1 && l2 == other.l2;
  }
  std::string digest() const;  // 16 hexadecimal digits, for file names
  std::string text() const;  // "AMD EPYC (AuthenticAMD 25/17, avx512bf16, L1 32 KiB, L2 1024 KiB)"
};

// cpuinfo: the text of /proc/cpuinfo. l1, l2: cache sizes of the first core from /sys ("32K").
Hardware parse_hardware(const std::string& cpuinfo, const std::string& l1, const std::string& l2);
// This machine. Unknown fields are empty or 0.
const Hardware& this_hardware();

}  // namespace valora::kernels
