// The parts of CUDA's language and built-in functions that the kernels use, for an ordinary C++
// compiler. Included before each .cu file.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/emulation/access_observer.h"
#include "kernels/cuda/emulation/block.h"
#include "kernels/cuda/emulation/machine.h"

#define __global__
#define __device__
#define __host__
#define __restrict__
#define __launch_bounds__(...)
// Accesses of atomic operations do not race with each other, so they are not observed.
#define VALORA_ATOMIC __attribute__((no_sanitize_thread))

#define threadIdx (valora::kernels::cuda::emulation::current_block->thread_index())
#define blockIdx (valora::kernels::cuda::emulation::current_block->index())
#define blockDim (valora::kernels::cuda::emulation::current_block->call().block)
#define gridDim (valora::kernels::cuda::emulation::current_block->call().grid)

namespace valora::kernels::cuda::emulation {

inline void require_whole_warp(unsigned mask) {
  if (mask != 0xffffffffu) fail("does a warp operation with a mask of some lanes");
}

// The `value` passed by lane `from`.
template <typename T>
T exchange(T value, unsigned from) {
  struct Argument {
    T value, result;
    unsigned from;
  } own{value, {}, from};
  current_block->meet(Meeting::kShuffle, &own, [](const Lanes& lanes) {
    for (void* lane : lanes) {
      auto* a = static_cast<Argument*>(lane);
      a->result = static_cast<const Argument*>(lanes[a->from % kLanes])->value;
    }
  });
  return own.result;
}

}  // namespace valora::kernels::cuda::emulation

inline void __syncthreads() { valora::kernels::cuda::emulation::current_block->barrier(); }
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  using namespace valora::kernels::cuda::emulation;
  require_whole_warp(mask);
  current_block->meet(Meeting::kSync, nullptr, nullptr);
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int from) {
  using namespace valora::kernels::cuda::emulation;
  require_whole_warp(mask);
  return exchange(value, static_cast<unsigned>(from));
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits) {
  using namespace valora::kernels::cuda::emulation;
  require_whole_warp(mask);
  return exchange(value, threadIdx.x % kLanes ^ static_cast<unsigned>(bits));
}
// Threads switch only at barriers and warp operations, so this is atomic.
VALORA_ATOMIC inline int atomicAdd(int* p, int value) {
  const int before = *p;
  *p += value;
  return before;
}
template <typename T>
T __ldg(const T* p) {
  return *p;
}
inline float __uint_as_float(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t __float_as_uint(float v) { return std::bit_cast<uint32_t>(v); }
// The eight bytes of x (0 to 3) and y (4 to 7) are numbered; byte i of the result is the one that
// nibble i of the selector names.
inline uint32_t __byte_perm(uint32_t x, uint32_t y, uint32_t selector) {
  const uint64_t bytes = uint64_t{y} << 32 | x;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i)
    result |= static_cast<uint32_t>(bytes >> (selector >> (4 * i) & 7) * 8 & 0xff) << (8 * i);
  return result;
}
inline float rsqrtf(float v) { return 1.0f / std::sqrt(v); }
template <typename A, typename B>
constexpr auto min(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(a) : static_cast<T>(b);
}
template <typename A, typename B>
constexpr auto max(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}
