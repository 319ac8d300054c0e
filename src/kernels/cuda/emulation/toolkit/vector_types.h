// The toolkit's vector types and dim3. As on a GPU, vectors are read and written whole, so their
// addresses must be multiples of their size.
#pragma once

#include <cstdint>

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

namespace valora::kernels::cuda::emulation {

[[noreturn]] void fail_misaligned(const void* address, int bytes);

template <int bytes>
void require_aligned(const void* address) {
  // The compiler assumes that objects are aligned; the asm hides where the address comes from.
  asm("" : "+r"(address));
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0) fail_misaligned(address, bytes);
}

}  // namespace valora::kernels::cuda::emulation

#define VALORA_VECTOR_ACCESS(type)                                          \
  type() = default;                                                         \
  type(const type& from) { *this = from; }                                  \
  type& operator=(const type& from) {                                       \
    valora::kernels::cuda::emulation::require_aligned<sizeof(type)>(this);  \
    valora::kernels::cuda::emulation::require_aligned<sizeof(type)>(&from); \
    assign(from);                                                           \
    return *this;                                                           \
  }

struct alignas(8) float2 {
  float x, y;
  float2(float x, float y) : x(x), y(y) {}
  VALORA_VECTOR_ACCESS(float2)

 private:
  void assign(const float2& v) { x = v.x, y = v.y; }
};
struct alignas(8) uint2 {
  unsigned x, y;
  uint2(unsigned x, unsigned y) : x(x), y(y) {}
  VALORA_VECTOR_ACCESS(uint2)

 private:
  void assign(const uint2& v) { x = v.x, y = v.y; }
};
struct alignas(16) float4 {
  float x, y, z, w;
  float4(float x, float y, float z, float w) : x(x), y(y), z(z), w(w) {}
  VALORA_VECTOR_ACCESS(float4)

 private:
  void assign(const float4& v) { x = v.x, y = v.y, z = v.z, w = v.w; }
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
  uint4(unsigned x, unsigned y, unsigned z, unsigned w) : x(x), y(y), z(z), w(w) {}
  VALORA_VECTOR_ACCESS(uint4)

 private:
  void assign(const uint4& v) { x = v.x, y = v.y, z = v.z, w = v.w; }
};
#undef VALORA_VECTOR_ACCESS
