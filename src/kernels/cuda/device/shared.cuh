// Declares shared memory uniformly, so that a build without nvcc can place it.
#pragma once

// VALORA_SHARED: `type name extents;`, 16-byte aligned, e.g. VALORA_SHARED(float, sums, [4][32]).
// VALORA_DYNAMIC_SHARED: the dynamic shared memory of the launch as bytes, 16-byte aligned.
#ifdef VALORA_CUDA_EMULATED
#define VALORA_SHARED(type, name, extents)                                                   \
  using name##_memory = type extents;                                                        \
  static char name##_declaration = 0;                                                        \
  auto& name = *reinterpret_cast<name##_memory*>(                                            \
      emulation::current_block->static_shared(&name##_declaration, sizeof(name##_memory)))
#define VALORA_DYNAMIC_SHARED(name) \
  auto* const name =                \
      reinterpret_cast<unsigned char*>(emulation::current_block->dynamic_shared())
#else
#define VALORA_SHARED(type, name, extents) __shared__ __align__(16) type name extents
#define VALORA_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif
