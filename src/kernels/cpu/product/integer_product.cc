#include "kernels/cpu/product/integer_product.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

namespace valora::kernels {
namespace {

// Of decoded weights: half of a small L2.
constexpr int64_t kDecodedBytes = 128 << 10;

struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};

void* decoded_memory() {
  thread_local std::unique_ptr<void, Freed> memory(std::aligned_alloc(64, kDecodedBytes));
  if (!memory) throw std::bad_alloc();
  return memory.get();
}

template <typename T>
float sum_of(const T* x, int64_t count) {
  constexpr int kLanes = 16;
  float partial[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int l = 0; l < kLanes; ++l) partial[l] += to_float(x[i + l]);
  for (int l = 0; i < count; ++i, ++l) partial[l] += to_float(x[i]);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) partial[l] += partial[l + half];
  return partial[0];
}

}  // namespace

template <typename T>
void sum_groups(const T* x, int64_t m, int64_t ldx, int64_t k, int64_t group, float* sums) {
  for (int64_t row = 0; row < m; ++row)
    for (int64_t i = 0; i < k; i += group)
      *sums++ = sum_of(x + row * ldx + i, std::min(group, k - i));
}

template <typename T>
void multiply_integers(const KernelSet<T>& kernels, IntegerProduct p) {
  const int64_t chunks = (p.w.k + kChunkInputs - 1) / kChunkInputs;
  p.chunk_begin = 0;
  p.chunk_end = chunks;
  if (p.m <= kernels.integer_rows) return kernels.multiply_integers(p);
  const int64_t element = kernels.float_inputs ? 4 : 2;
  const int64_t together =
      kDecodedBytes / (kIntegerPanels * kPanelOutputs * kChunkInputs * element);
  void* const decoded = decoded_memory();
  const int64_t panel_end = p.panel_end;
  const bool add = p.add;
  for (int64_t panel = p.panel_begin; panel < panel_end; panel += kIntegerPanels)
    for (int64_t chunk = 0; chunk < chunks; chunk += together) {
      p.panel_begin = panel;
      p.panel_end = std::min(panel_end, panel + kIntegerPanels);
      p.chunk_begin = chunk;
      p.chunk_end = std::min(chunks, chunk + together);
      p.add = add || chunk > 0;
      kernels.decode_integers(p, decoded);
      p.decoded = decoded;
      kernels.multiply_integers(p);
    }
}

#define VALORA_INSTANTIATE(T)                                                     \
  template void sum_groups(const T*, int64_t, int64_t, int64_t, int64_t, float*); \
  template void multiply_integers(const KernelSet<T>&, IntegerProduct);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)
#undef VALORA_INSTANTIATE

}  // namespace valora::kernels
