// The loops of the merge kernel, written over the Vectors of product/product_kernels.h, which must
// also provide:
//
//   add_to_weights<STREAM>(out, w, c, sums)
//     Writes one vector of weights, w + c · sums, rounded once. sums[i] belongs to input i of the
//     vector. STREAM: non-temporal stores; out must be 64-byte aligned.
//   finish_streams()
//     A store fence, required before another thread reads streamed weights.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/merge/merge_block.h"
#include "kernels/types/packed.h"

namespace valora::kernels {
namespace {

// Inputs per run: their sums stay in registers.
template <typename V>
inline constexpr int kMergeRun =
    static_cast<int>(std::bit_floor(static_cast<unsigned>(V::kTileSums)));

inline constexpr int64_t kAhead = 32;  // prefetch distance in vectors of weights

// Transposes the block's part of A from panels into runs of [rank][kMergeRun]. bf16 ranks are
// stored in pairs, as in B's vectors. The last run is padded with zeros.
template <typename V, typename T>
void transpose_a(const Panels<T>& a, const MergeBlock& block, T* scratch) {
  constexpr int64_t kInputs = kVectorInputs<T>, kRunVectors = kMergeRun<V> / kInputs;
  const int64_t groups = (a.n + kInputs - 1) / kInputs;  // ranks, or pairs of them
  for (int64_t v = block.vector_begin; v < block.vector_end; v += kRunVectors) {
    const int64_t vectors = std::min(kRunVectors, block.vector_end - v);
    if (vectors < kRunVectors) std::fill_n(scratch, groups * kMergeRun<V> * kInputs, T{});
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t rank = g * kInputs;
      const T* from = a.vector(rank / kPanelOutputs, v) + rank % kPanelOutputs * kInputs;
      T* to = scratch + g * kMergeRun<V> * kInputs;
      for (int64_t i = 0; i < vectors; ++i, from += kPanelOutputs * kInputs)
        for (int64_t j = 0; j < kInputs; ++j)
          for (int64_t r = 0; r < kInputs; ++r) *to++ = from[r * kInputs + j];
    }
    scratch += groups * kMergeRun<V> * kInputs;
  }
}

// Merges 16 outputs × one run of inputs. Only the run's first `vectors` vectors exist.
template <typename V, bool STREAM, typename T>
inline __attribute__((always_inline)) void merge_run(const T* a, const T* b, int64_t groups,
                                                     const T* w, T* out, float c, int64_t vectors) {
  constexpr int64_t kInputs = kVectorInputs<T>, kVector = kInputs * kPanelOutputs;
  constexpr int kRun = kMergeRun<V>;
  typename V::Sums sums[kRun];
#pragma GCC unroll 16
  for (int i = 0; i < kRun; ++i) sums[i] = V::zero();
#pragma GCC unroll 16
  for (int i = 0; i < kRun / kInputs; ++i) __builtin_prefetch(w + (i + kAhead) * kVector, 0, 3);
  for (int64_t g = 0; g < groups; ++g, a += kRun * kInputs, b += kVector) {
    const typename V::Weights even = V::template weights<0>(b);
#pragma GCC unroll 16
    for (int i = 0; i < kRun; ++i)
      V::multiply_add(sums[i], V::template value<0>(a + i * kInputs), even);
    if constexpr (V::kSteps == 2) {
      const typename V::Weights odd = V::template weights<1>(b);
#pragma GCC unroll 16
      for (int i = 0; i < kRun; ++i)
        V::multiply_add(sums[i], V::template value<1>(a + i * kInputs), odd);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRun / kInputs; ++i)
    if (i < vectors)
      V::template add_to_weights<STREAM>(out + i * kVector, w + i * kVector, c, sums + i * kInputs);
}

// Decodes the weights of inputs [begin, end) of one panel to fp32, [end - begin][16].
template <int BITS>
void decode_inputs(const IntegerPanels& p, int64_t panel, int64_t begin, int64_t end, float* w) {
  const uint8_t* data = p.data + panel * p.panel_bytes;
  constexpr auto middle = static_cast<float>(Packed<BITS>::kMiddle);
  for (int64_t i = begin; i < end; ++i, w += kPanelOutputs) {
    constexpr int64_t kWordInputs = Packed<BITS>::kWordInputs;
    uint32_t words[kPanelOutputs];  // that hold this input, one per output
    std::memcpy(words, data + i / kWordInputs * static_cast<int64_t>(sizeof words), sizeof words);
    for (int64_t j = 0; j < kPanelOutputs; ++j)
      w[j] = static_cast<float>(static_cast<int32_t>(unpacked<BITS>(words[j], i % kWordInputs))) -
             middle;
    const int64_t part = i / p.group * kPanelOutputs;
    if (p.zeros)
      for (int64_t j = 0; j < kPanelOutputs; ++j)
        w[j] -= static_cast<float>(data[p.zeros_at + part + j]) - middle;
    float minimums[kPanelOutputs] = {};
    if (p.minimums) {
      for (int64_t j = 0; j < kPanelOutputs; ++j) w[j] += middle;
      std::memcpy(minimums, data + p.zeros_at + 4 * part, sizeof minimums);
    }
    for (int64_t j = 0; j < kPanelOutputs; ++j) {
      float scale;
      if (p.float_scales) {
        std::memcpy(&scale, data + p.scales_at + 4 * (part + j), 4);
      } else {
        uint16_t half;
        std::memcpy(&half, data + p.scales_at + 2 * (part + j), 2);
        scale = std::bit_cast<float>(uint32_t{half} << 16);
      }
      w[j] = w[j] * scale + minimums[j];
    }
  }
}

// Writes one vector of merged weights, w + c · sums, rounded once. w: fp32 [16] per input.
template <typename V, typename T>
inline __attribute__((always_inline)) void add_to_floats(T* out, const float* w, float c,
                                                         const typename V::Sums* sums) {
  constexpr int64_t kInputs = kVectorInputs<T>;
  T rounded[kInputs][kPanelOutputs];
  for (int64_t i = 0; i < kInputs; ++i)
    V::store(rounded[i], kPanelOutputs,
             V::scale_add(c, sums[i], V::load(w + i * kPanelOutputs, kPanelOutputs)));
  for (int64_t j = 0; j < kPanelOutputs; ++j)
    for (int64_t i = 0; i < kInputs; ++i) out[j * kInputs + i] = rounded[i][j];
}

// The same as merge_run() for integer weights, in panel `panel`.
template <typename V, typename T>
void merge_integers_run(const Merge<T>& m, int64_t panel, int64_t vector, int64_t vectors,
                        const T* a, const T* b, int64_t groups, T* out) {
  constexpr int64_t kInputs = kVectorInputs<T>, kVector = kInputs * kPanelOutputs;
  constexpr int kRun = kMergeRun<V>;
  float w[kRun * kPanelOutputs];
  with_bits(m.integers->bits, [&](auto bits) {
    decode_inputs<bits>(*m.integers, panel, vector * kInputs,
                        std::min(m.w.k, (vector + vectors) * kInputs), w);
  });
  if ((vector + vectors) * kInputs > m.w.k)  // padding of an odd last input's pair
    std::fill_n(w + (m.w.k - vector * kInputs) * kPanelOutputs, kPanelOutputs, 0.0f);
  typename V::Sums sums[kRun];
  for (int i = 0; i < kRun; ++i) sums[i] = V::zero();
  for (int64_t g = 0; g < groups; ++g, a += kRun * kInputs, b += kVector) {
    const typename V::Weights even = V::template weights<0>(b);
    for (int i = 0; i < kRun; ++i)
      V::multiply_add(sums[i], V::template value<0>(a + i * kInputs), even);
    if constexpr (V::kSteps == 2) {
      const typename V::Weights odd = V::template weights<1>(b);
      for (int i = 0; i < kRun; ++i)
        V::multiply_add(sums[i], V::template value<1>(a + i * kInputs), odd);
    }
  }
  for (int i = 0; i < vectors; ++i)
    add_to_floats<V>(out + i * kVector, w + i * kVector, m.coefficient, sums + i * kInputs);
}

template <typename V, typename T>
void merge_integers(const Merge<T>& m, const MergeBlock& block, const T* scratch) {
  constexpr int64_t kInputs = kVectorInputs<T>, kVector = kInputs * kPanelOutputs,
                    kRunVectors = kMergeRun<V> / kInputs;
  const int64_t groups = (m.a.n + kInputs - 1) / kInputs;
  for (int64_t p = block.panel_begin; p < block.panel_end; ++p) {
    T* out = m.merged + p * panel_elements<T>(m.w.k);
    const T* a = scratch;
    for (int64_t v = block.vector_begin; v < block.vector_end;
         v += kRunVectors, a += groups * kMergeRun<V> * kInputs)
      merge_integers_run<V>(m, p, v, std::min(kRunVectors, block.vector_end - v), a, m.b.panel(p),
                            groups, out + v * kVector);
  }
}

template <typename V, bool STREAM, typename T>
void merge_panels(const Merge<T>& m, const MergeBlock& block, const T* scratch) {
  constexpr int64_t kInputs = kVectorInputs<T>, kVector = kInputs * kPanelOutputs,
                    kRunVectors = kMergeRun<V> / kInputs;
  const int64_t groups = (m.a.n + kInputs - 1) / kInputs;
  for (int64_t p = block.panel_begin; p < block.panel_end; ++p) {
    const T* b = m.b.panel(p);
    const T* a = scratch;
    const int64_t panel = p * panel_elements<T>(m.w.k);
    const T* w = m.w.data + panel;
    T* out = m.merged + panel;
    int64_t v = block.vector_begin;
    for (; v + kRunVectors <= block.vector_end;
         v += kRunVectors, a += groups * kMergeRun<V> * kInputs)
      merge_run<V, STREAM>(a, b, groups, w + v * kVector, out + v * kVector, m.coefficient,
                           kRunVectors);
    if (v < block.vector_end)
      merge_run<V, STREAM>(a, b, groups, w + v * kVector, out + v * kVector, m.coefficient,
                           block.vector_end - v);
  }
}

// A separate W' is written with non-temporal stores, which keep it out of the caches.
template <typename V>
void merge_block(const Merge<typename V::Element>& m, const MergeBlock& block,
                 typename V::Element* scratch) {
  transpose_a<V>(m.a, block, scratch);
  if (m.integers) return merge_integers<V>(m, block, scratch);
  const bool aligned = reinterpret_cast<uintptr_t>(m.merged) % 64 == 0;
  if (m.merged == m.w.data || !aligned) return merge_panels<V, false>(m, block, scratch);
  merge_panels<V, true>(m, block, scratch);
  V::finish_streams();
}

}  // namespace
}  // namespace valora::kernels
