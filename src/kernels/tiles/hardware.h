// What a table of tiles was measured on.
#pragma once

#include <cstdint>
#include <string>

namespace valora::kernels {

struct Hardware {
  std::string cpu;     // model name, as the system tells it
  std::string vendor;  // "AuthenticAMD"
  int64_t family = 0, model = 0;
  std::string isa;         // the best kernels it runs (cpu/isa/isa.h)
  int64_t l1 = 0, l2 = 0;  // bytes of data cache a core

  friend bool operator==(const Hardware&, const Hardware&) = default;
  // Of a make that tiles of one serve the other: all but names and model numbers, which hosts of
  // virtual machines make up.
  bool same_kind(const Hardware& other) const {
    return vendor == other.vendor && isa == other.isa && l1 == other.l1 && l2 == other.l2;
  }
  std::string digest() const;  // 16 hexadecimal digits, for file names
  std::string text() const;  // "AMD EPYC (AuthenticAMD 25/17, avx512bf16, L1 32 KiB, L2 1024 KiB)"
};

// Parsed from what Linux shows: /proc/cpuinfo, and the sizes of the first core's caches ("32K").
Hardware parse_hardware(const std::string& cpuinfo, const std::string& l1, const std::string& l2);
// Of this machine; what the system does not tell is left empty.
const Hardware& this_hardware();

}  // namespace valora::kernels
