// The one layout of weights that every product and every instruction set reads.
//
// A panel holds 16 outputs in 64-byte vectors: bf16 as [(k + 1) / 2][16][2], pairs of inputs side
// by side as vdpbf16ps takes them; fp32 as [k][16]. Zero-padded in both directions. The same layout
// serves dense weights (n = out), LoRA A (n = rank) and B (k = rank), the keys of a KV block (n =
// tokens) and its values (k = tokens).
#pragma once

#include <cstdint>

#include "base/parallel.h"
#include "kernels/types/bf16.h"
#include "kernels/types/lora.h"

namespace valora::kernels {

inline constexpr int64_t kPanelOutputs = 16;

// Inputs that one 64-byte vector of a panel holds for its 16 outputs.
template <typename T>
inline constexpr int64_t kVectorInputs = sizeof(T) == 2 ? 2 : 1;

constexpr int64_t panels_of(int64_t n) { return (n + kPanelOutputs - 1) / kPanelOutputs; }

template <typename T>
constexpr int64_t panel_elements(int64_t k) {
  return (k + kVectorInputs<T> - 1) / kVectorInputs<T> * kVectorInputs<T> * kPanelOutputs;
}

// Elements of the packed form of an [n, k] matrix.
template <typename T>
constexpr int64_t packed_elements(int64_t n, int64_t k) {
  return panels_of(n) * panel_elements<T>(k);
}

// The place in a panel of input `i` of output `j`.
template <typename T>
constexpr int64_t panel_index(int64_t j, int64_t i) {
  constexpr int64_t inputs = kVectorInputs<T>;
  return (i / inputs * kPanelOutputs + j) * inputs + i % inputs;
}

// An [n, k] matrix in panels: side by side at `data`, or, as an adapter lies in the pool, in pieces
// of `panels_per_piece` panels each, wherever they are.
template <typename T>
struct Panels {
  const T* data = nullptr;
  int64_t n = 0;  // outputs
  int64_t k = 0;  // inputs
  const T* const* pieces = nullptr;
  int64_t panels_per_piece = 0;

  // Always inline: a file compiled for an instruction set must not lend its code to others.
  __attribute__((always_inline)) const T* panel(int64_t index) const {
    const T* begin = pieces ? pieces[index / panels_per_piece] : data;
    return begin + (pieces ? index % panels_per_piece : index) * panel_elements<T>(k);
  }
};

// An adapter's factor, of elements of type T.
template <typename T>
Panels<T> panels_of_factor(const LoraFactor& factor, int64_t n, int64_t k) {
  return {static_cast<const T*>(factor.data), n, k,
          reinterpret_cast<const T* const*>(factor.pieces), factor.panels_per_piece};
}

// w: [n, k] row-major → panels, side by side.
template <typename T>
void pack_panels(const T* w, int64_t n, int64_t k, T* panels,
                 const ParallelFor& parallel = serial_for);
// And back.
template <typename T>
void unpack_panels(const Panels<T>& panels, T* w);

}  // namespace valora::kernels
