// Shared memory of a kernel, declared in one way, so that a build without nvcc can place it.
#pragma once

// `type name extents;`, 16-byte aligned, e.g. VALORA_SHARED(float, sums, [4][32]).
#define VALORA_SHARED(type, name, extents) __shared__ __align__(16) type name extents

// The dynamic shared memory of the launch as bytes, 16-byte aligned.
#define VALORA_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
