// All PTX of the kernels: tensor-core products and asynchronous copies of sm_80 and later (PTX ISA,
// "mma", "ldmatrix", "cp.async"), communication between the blocks of a launch, and exp2.
//
// Fragments of m16n8k16: lane l has g = l / 4 and q = l % 4.
//   A [16, 16]: words (row g, k 2q), (row g+8, k 2q), (row g, k 2q+8), (row g+8, k 2q+8)
//   B [16, 8]:  words (k 2q, column g), (k 2q+8, column g)
//   C [16, 8]:  (row g, columns 2q, 2q+1), (row g+8, columns 2q, 2q+1)
// where a word is two values of consecutive k.
#pragma once

#include "kernels/cuda/device/scalar.cuh"

#ifdef VALORA_CUDA_EMULATED
#include "kernels/cuda/emulation/instructions.cuh"
#else
namespace valora::kernels::cuda {

// c += a b
template <typename T>
__device__ void mma(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                    uint32_t b1);
template <>
__device__ inline void mma<bf16>(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                 uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
template <>
__device__ inline void mma<fp16>(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                 uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Loads four 8x8 matrices of 16-bit values. Lanes 8i to 8i+7 pass the addresses of the rows of
// matrix i.
__device__ inline void load_matrices(uint32_t (&m)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_transposed(uint32_t (&m)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
}

__device__ inline void store_shared(uint32_t address, const uint4& v) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}

// Copies 16 bytes to shared memory, or writes zeros if not `valid`; `source` is then not read, but
// must still be a global address.
__device__ inline void copy_async(uint32_t destination, const void* source, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination),
               "l"(__cvta_generic_to_global(source)), "r"(bytes)
               : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most `pending` of this thread's copy groups are in flight.
template <int pending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// Increments a counter in global memory, which restarts at 0 after `most`. → its value before.
// Writes of this block before its last barrier are visible to threads that increment the counter
// later, and to their blocks after the next barrier.
__device__ inline unsigned count_in_turns(unsigned* counter, unsigned most) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(counter)), "r"(most)
               : "memory");
  return before;
}
// Reads what other thread blocks of the same launch have written, bypassing this multiprocessor's
// L1 cache. Is not moved ahead of preceding barriers.
__device__ inline float2 load_from_l2(const float2* p) {
  float2 v;
  asm volatile("ld.global.cg.v2.f32 {%0,%1}, [%2];"
               : "=f"(v.x), "=f"(v.y)
               : "l"(__cvta_generic_to_global(p)));
  return v;
}
__device__ inline float4 load_from_l2(const float4* p) {
  float4 v;
  asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(__cvta_generic_to_global(p)));
  return v;
}

// Relative error 2^-22, far below the rounding of weights to 16 bits.
__device__ inline float fast_exp2(float v) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(v));
  return power;
}

}  // namespace valora::kernels::cuda
#endif
