// What kernels are compiled for: instruction sets of CPUs, architectures of GPUs.
#pragma once

#include <cstdint>

namespace valora::kernels {

enum class Isa : uint8_t {
  kAvx512Bf16,  // AVX-512 F, BW, VL, DQ and BF16
  kAvx512,      // AVX-512 F, BW, VL and DQ
  kAvx2,        // AVX2 and FMA
  kPortable,    // the compiler's baseline
};

enum class CudaArch : uint8_t {
  kSm80,   // A100
  kSm90a,  // H100, H200
};

enum class Device : uint8_t { kCpu, kCuda };

// A device and its instruction set or architecture.
class Processor {
 public:
  constexpr Processor() = default;
  constexpr Processor(Isa isa) : code_(static_cast<uint8_t>(isa)) {}  // NOLINT: an Isa is one
  constexpr Processor(CudaArch arch)                                  // NOLINT: and so is this
      : device_(Device::kCuda), code_(static_cast<uint8_t>(arch)) {}
  constexpr Processor(Device device, uint8_t code) : device_(device), code_(code) {}

  constexpr Device device() const { return device_; }
  constexpr Isa isa() const { return static_cast<Isa>(code_); }             // of kCpu
  constexpr CudaArch arch() const { return static_cast<CudaArch>(code_); }  // of kCuda
  constexpr uint8_t code() const { return code_; }  // the enumerator's number

  friend bool operator==(const Processor&, const Processor&) = default;

 private:
  Device device_ = Device::kCpu;
  uint8_t code_ = static_cast<uint8_t>(Isa::kPortable);
};

}  // namespace valora::kernels
