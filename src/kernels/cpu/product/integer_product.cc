#include "kernels/cpu/product/integer_product.h"
#include "kernels/cpu/freed.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/product/product.h"
#include "kernels/tiles/choose.h"

namespace valora::kernels {
namespace {

// Memory for decoded weights: half of a small L2.
constexpr int64_t kDecodedBytes = 128 << 10;

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

// Computes the part of p with these chunks' inputs as a product of E, using their decoded weights.
// Adds to y unless the part is the first.
template <typename E>
void multiply_decoded(const KernelSet<E>& kernels, const IntegerProduct& p, const ChunkRange& range,
                      const E* decoded, const CpuTile& tile) {
  const int64_t first = p.panel_begin * kPanelOutputs, begin = range.begin * kChunkInputs;
  const E* panels[kIntegerPanels];
  for (int64_t j = 0; j < kIntegerPanels; ++j)
    panels[j] = decoded + j * (range.end - range.begin) * kChunkInputs * kPanelOutputs;
  Product<E> product;
  product.x = static_cast<const E*>(p.x) + begin;
  product.m = p.m;
  product.ldx = p.ldx;
  product.w.n = std::min(p.w.n, p.panel_end * kPanelOutputs) - first;
  product.w.k = std::min(p.w.k, range.end * kChunkInputs) - begin;
  product.w.pieces = panels;
  product.w.panels_per_piece = 1;
  product.panel_end = p.panel_end - p.panel_begin;
  product.epilogue = begin > 0 ? Epilogue::kAddFloat : Epilogue::kStoreFloat;
  product.bias = begin > 0 || !p.bias ? nullptr : p.bias + first;
  product.y = p.y + first - p.first_output;
  product.ldy = p.ldy;
  product.tile = tile;
  kernels.multiply(product);
}

// Decodes as many weights at a time as stay in L2, and multiplies all rows by them.
template <typename E, typename Decode>
void decode_and_multiply(const KernelSet<E>& kernels, const IntegerProduct& whole,
                         const Decode& decode) {
  constexpr int64_t kTogether =
      kDecodedBytes / (kIntegerPanels * kPanelOutputs * kChunkInputs * sizeof(E));
  const CpuTile tile = choose_cpu_tile({ProductKind::kDense, sizeof(E) == sizeof(float), isa(),
                                        whole.m, kIntegerPanels * kPanelOutputs, whole.w.k});
  auto* const decoded = static_cast<E*>(decoded_memory());
  IntegerProduct p = whole;
  for (int64_t panel = whole.panel_begin; panel < whole.panel_end; panel += kIntegerPanels) {
    p.panel_begin = panel;
    p.panel_end = std::min(whole.panel_end, panel + kIntegerPanels);
    for (int64_t chunk = 0, all = chunks_of(p.w); chunk < all; chunk += kTogether) {
      const ChunkRange range{chunk, std::min(all, chunk + kTogether)};
      decode(p, range, decoded);
      multiply_decoded(kernels, p, range, decoded, tile);
    }
  }
}

}  // namespace

template <typename T>
void sum_groups(const T* x, int64_t m, int64_t ldx, int64_t k, int64_t group, float* sums) {
  for (int64_t row = 0; row < m; ++row)
    for (int64_t i = 0; i < k; i += group)
      *sums++ = sum_of(x + row * ldx + i, std::min(group, k - i));
}

template <typename T>
void multiply_integers(const KernelSet<T>& kernels, const IntegerProduct& p) {
  if (p.m <= kernels.integer_rows) return kernels.multiply_integers(p);
  if (kernels.float_inputs)
    decode_and_multiply(kernel_set<float>(), p, kernels.decode_integers);
  else
    decode_and_multiply(kernels, p, kernels.decode_integers);
}

#define VALORA_INSTANTIATE(T)                                                     \
  template void sum_groups(const T*, int64_t, int64_t, int64_t, int64_t, float*); \
  template void multiply_integers(const KernelSet<T>&, const IntegerProduct&);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)
#undef VALORA_INSTANTIATE

}  // namespace valora::kernels
