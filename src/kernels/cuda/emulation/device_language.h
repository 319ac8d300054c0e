// The parts of CUDA's language and built-in functions that the kernels use, for an ordinary
// compiler. Included before each .cu file.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/emulation/block.h"
#include "kernels/cuda/emulation/machine.h"

#define __global__
#define __device__
#define __host__
#define __restrict__
#define __launch_bounds__(...)

#define threadIdx (valora::kernels::cuda::emulation::current_block->thread_index())
#define blockIdx (valora::kernels::cuda::emulation::current_block->index())
#define blockDim (valora::kernels::cuda::emulation::current_block->call().block)
#define gridDim (valora::kernels::cuda::emulation::current_block->call().grid)

namespace valora::kernels::cuda::emulation {

inline void require_whole_warp(unsigned mask) {
  if (mask != 0xffffffffu) fail("does a warp operation with a mask of some lanes");
}

// What lane `from` gives as `value`.
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
// Threads change places at barriers and warp operations alone.
inline int atomicAdd(int* p, int value) {
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
