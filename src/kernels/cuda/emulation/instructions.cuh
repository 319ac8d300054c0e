// The emulated counterpart of device/mma.cuh: performs its PTX instructions for all lanes of a warp
// at once. The layouts of fragments are described there. Products are summed in fp32 in the order
// of k, so the last bits differ from those of tensor cores.
#pragma once

#include "kernels/cuda/device/scalar.cuh"

namespace valora::kernels::cuda {

template <typename T>
struct MmaArgument {
  float* c;
  uint32_t a[4], b[2];

  static void multiply(const emulation::Lanes& lanes) {
    float a[16][16], b[16][8], sums[16][8] = {};
    for (unsigned lane = 0; lane < emulation::kLanes; ++lane) {
      const auto* from = static_cast<const MmaArgument*>(lanes[lane]);
      const unsigned g = lane / 4, q = lane % 4;
      for (int i = 0; i < 4; ++i) {
        const float2 pair = unpack<T>(from->a[i]);
        float* to = &a[g + i % 2 * 8][2 * q + i / 2 * 8];
        to[0] = pair.x, to[1] = pair.y;
      }
      for (int i = 0; i < 2; ++i) {
        const float2 pair = unpack<T>(from->b[i]);
        b[2 * q + i * 8][g] = pair.x, b[2 * q + i * 8 + 1][g] = pair.y;
      }
    }
    for (int row = 0; row < 16; ++row)
      for (int k = 0; k < 16; ++k)
        for (int n = 0; n < 8; ++n) sums[row][n] += a[row][k] * b[k][n];
    for (unsigned lane = 0; lane < emulation::kLanes; ++lane) {
      float* to = static_cast<MmaArgument*>(lanes[lane])->c;
      for (int i = 0; i < 4; ++i) to[i] += sums[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
    }
  }
};

template <typename T>
void mma(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
         uint32_t b1) {
  MmaArgument<T> own{c, {a0, a1, a2, a3}, {b0, b1}};
  emulation::current_block->meet(emulation::Meeting::kMma, &own, &MmaArgument<T>::multiply);
}

inline uint32_t shared_address(const void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  if (address >> 32 != 0)
    emulation::fail("takes the shared-memory address of a pointer to other memory");
  return static_cast<uint32_t>(address);
}

template <bool transposed>
struct LoadArgument {
  uint16_t row[8];
  uint32_t* m;

  static void load(const emulation::Lanes& lanes) {
    for (unsigned lane = 0; lane < emulation::kLanes; ++lane)
      for (unsigned i = 0; i < 4; ++i) {
        const auto at = [&](unsigned row, unsigned column) -> uint32_t {
          return static_cast<const LoadArgument*>(lanes[8 * i + row])->row[column];
        };
        const unsigned g = lane / 4, q = lane % 4 * 2;
        static_cast<LoadArgument*>(lanes[lane])->m[i] =
            transposed ? at(q, g) | at(q + 1, g) << 16 : at(g, q) | at(g, q + 1) << 16;
      }
  }
};

template <bool transposed>
void load_any_matrices(uint32_t (&m)[4], uint32_t address) {
  using namespace emulation;
  current_block->read_shared(address);
  LoadArgument<transposed> own{{}, m};
  const auto* from = reinterpret_cast<const uint16_t*>(static_cast<uintptr_t>(address));
  for (int i = 0; i < 8; ++i) own.row[i] = from[i];
  current_block->meet(transposed ? Meeting::kLoadTransposed : Meeting::kLoadMatrices, &own,
                      &LoadArgument<transposed>::load);
}
inline void load_matrices(uint32_t (&m)[4], uint32_t address) {
  load_any_matrices<false>(m, address);
}
inline void load_transposed(uint32_t (&m)[4], uint32_t address) {
  load_any_matrices<true>(m, address);
}

inline void store_shared(uint32_t address, const uint4& v) {
  *reinterpret_cast<uint4*>(static_cast<uintptr_t>(address)) = v;
}

inline void copy_async(uint32_t destination, const void* source, bool valid) {
  if (reinterpret_cast<uintptr_t>(source) % 16 != 0)
    emulation::fail("cp.async from an address that is not 16-byte aligned");
  emulation::current_block->copy_later({destination, valid ? source : nullptr});
}
inline void commit_copies() { emulation::current_block->commit_copies(); }
template <int pending>
void wait_copies() {
  emulation::current_block->wait_copies(pending);
}

// Blocks run one after another, so there is nothing to order.
VALORA_ATOMIC inline unsigned count_in_turns(unsigned* counter, unsigned most) {
  if (auto* observer = emulation::access_observer()) observer->counted(counter);
  const unsigned before = *counter;
  *counter = before >= most ? 0 : before + 1;
  return before;
}
template <typename T>
T load_from_l2(const T* p) {
  return *p;
}

inline float fast_exp2(float v) { return std::exp2(v); }

}  // namespace valora::kernels::cuda
