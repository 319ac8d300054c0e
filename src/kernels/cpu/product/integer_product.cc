#include "kernels/cpu/product/integer_product.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/product/product.h"
#include "kernels/tiles/choose.h"

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

// The parts into which a product is cut so that the decoded weights of each stay in L2.
struct DecodedParts {
  int64_t chunks;           // of all inputs
  int64_t chunks_together;  // decoded at once, for kIntegerPanels panels
};

DecodedParts decoded_parts(const IntegerProduct& p, int64_t element_bytes) {
  return {(p.w.k + kChunkInputs - 1) / kChunkInputs,
          kDecodedBytes / (kIntegerPanels * kPanelOutputs * kChunkInputs * element_bytes)};
}

// multiply(part): the product of the panels and chunks of `part`.
template <typename Multiply>
void for_each_part(const DecodedParts& parts, const IntegerProduct& whole,
                   const Multiply& multiply) {
  IntegerProduct p = whole;
  for (int64_t panel = whole.panel_begin; panel < whole.panel_end; panel += kIntegerPanels)
    for (int64_t chunk = 0; chunk < parts.chunks; chunk += parts.chunks_together) {
      p.panel_begin = panel;
      p.panel_end = std::min(whole.panel_end, panel + kIntegerPanels);
      p.chunk_begin = chunk;
      p.chunk_end = std::min(parts.chunks, chunk + parts.chunks_together);
      p.add = whole.add || chunk > 0;
      multiply(p);
    }
}

// A part whose weights are decoded with their scales, as a product of floats.
void multiply_floats(const KernelSet<float>& kernels, const IntegerProduct& p, const float* decoded,
                     const CpuTile& tile) {
  const int64_t first = p.panel_begin * kPanelOutputs, chunks = p.chunk_end - p.chunk_begin;
  const float* panels[kIntegerPanels];
  for (int64_t j = 0; j < kIntegerPanels; ++j)
    panels[j] = decoded + j * chunks * kChunkInputs * kPanelOutputs;
  Product<float> product;
  product.x = static_cast<const float*>(p.x) + p.chunk_begin * kChunkInputs;
  product.m = p.m;
  product.ldx = p.ldx;
  product.w.n = std::min(p.w.n, p.panel_end * kPanelOutputs) - first;
  product.w.k = std::min(p.w.k, p.chunk_end * kChunkInputs) - p.chunk_begin * kChunkInputs;
  product.w.pieces = panels;
  product.w.panels_per_piece = 1;
  product.panel_end = p.panel_end - p.panel_begin;
  product.epilogue = p.add ? Epilogue::kAddFloat : Epilogue::kStoreFloat;
  product.bias = p.add || !p.bias ? nullptr : p.bias + first;
  product.y = p.y + first - p.first_output;
  product.ldy = p.ldy;
  product.tile = tile;
  kernels.multiply(product);
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
  const DecodedParts parts = decoded_parts(p, kernels.float_inputs ? 4 : 2);
  p.chunk_begin = 0;
  p.chunk_end = parts.chunks;
  if (p.m <= kernels.integer_rows) return kernels.multiply_integers(p);
  void* const decoded = decoded_memory();
  if (!kernels.float_inputs) {
    p.decoded = decoded;
    return for_each_part(parts, p, [&](const IntegerProduct& part) {
      kernels.decode_integers(part, decoded);
      kernels.multiply_integers(part);
    });
  }
  const CpuTile tile = choose_cpu_tile(
      {ProductKind::kDense, true, isa(), p.m, kIntegerPanels * kPanelOutputs, p.w.k});
  for_each_part(parts, p, [&](const IntegerProduct& part) {
    kernels.decode_integers(part, decoded);
    multiply_floats(kernel_set<float>(), part, static_cast<const float*>(decoded), tile);
  });
}

#define VALORA_INSTANTIATE(T)                                                     \
  template void sum_groups(const T*, int64_t, int64_t, int64_t, int64_t, float*); \
  template void multiply_integers(const KernelSet<T>&, IntegerProduct);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)
#undef VALORA_INSTANTIATE

}  // namespace valora::kernels
