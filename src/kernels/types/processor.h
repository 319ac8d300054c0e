// The targets that kernels are compiled for: CPU instruction sets and GPU architectures.
#pragma once

#include <cstdint>

namespace valora::kernels {

enum class Isa : uint8_t {
  kAvx512Bf16,  // AVX-512 F, BW, VL, DQ and BF16
  kAvx512,      // AVX-512 F, BW, VL and DQ
  kAvx2,        // AVX2 and FMA
  kPortable,    // the compiler's baseline
  kNeonBf16,    // NEON of ARMv8.2 with dot products, BF16 and I8MM
  kNeon,        // NEON of ARMv8.2 with dot products
  kAvxVnni,     // AVX2, FMA and AVX-VNNI
  kAmx,         // kAvx512Bf16 and AMX with BF16
};

enum class CudaArch : uint8_t {
  kSm80,   // A100
  kSm86,   // A10
  kSm89,   // L4, L40S, RTX 40
  kSm90,   // H100, H200
  kSm120,  // RTX 50, RTX PRO
};
// The newest architecture whose kernels run on a GPU of this compute capability, e.g. 90 for 9.0.
constexpr CudaArch arch_of(int capability) {
  if (capability >= 120) return CudaArch::kSm120;
  if (capability >= 90) return CudaArch::kSm90;
  if (capability >= 89) return CudaArch::kSm89;
  return capability >= 86 ? CudaArch::kSm86 : CudaArch::kSm80;
}

enum class Device : uint8_t { kCpu, kCuda };

// A device with its instruction set or architecture, in one byte.
class Processor {
 public:
  constexpr Processor() = default;
  constexpr Processor(Isa isa) : Processor(Device::kCpu, static_cast<uint8_t>(isa)) {}  // NOLINT
  constexpr Processor(CudaArch arch)  // NOLINT: implicit, like the constructor from Isa
      : Processor(Device::kCuda, static_cast<uint8_t>(arch)) {}
  // number: the value of the enumerator, below 64.
  constexpr Processor(Device device, uint8_t number)
      : code_(static_cast<uint8_t>(static_cast<uint8_t>(device) << kNumberBits | number)) {}

  constexpr Device device() const { return static_cast<Device>(code_ >> kNumberBits); }
  constexpr uint8_t number() const { return code_ & ((1 << kNumberBits) - 1); }
  constexpr Isa isa() const { return static_cast<Isa>(number()); }             // CPUs only
  constexpr CudaArch arch() const { return static_cast<CudaArch>(number()); }  // GPUs only

  friend bool operator==(const Processor&, const Processor&) = default;

 private:
  static constexpr int kNumberBits = 6;
  uint8_t code_ = static_cast<uint8_t>(Isa::kPortable);
};

}  // namespace valora::kernels
