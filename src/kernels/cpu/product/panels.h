// The weight layout used by all products with all instruction sets.
//
// An [n, k] matrix is divided into panels of 16 outputs, each stored as 64-byte vectors:
//   bf16: [(k + 1) / 2][16][2], pairs of inputs adjacent as vdpbf16ps expects them
//   fp32: [k][16]
// Both dimensions are zero-padded. The kernels need no alignment beyond that of T. Used for dense
// weights (n = out), LoRA A (n = rank) and B (k = rank), and for the keys (n = tokens) and values
// (k = tokens) of a KV block.
#pragma once

#include <cstdint>

#include "base/threads/parallel.h"
#include "kernels/types/bf16.h"
#include "kernels/types/lora.h"

namespace valora::kernels {

inline constexpr int64_t kPanelOutputs = 16;

// Inputs per 64-byte vector of a panel.
template <typename T>
inline constexpr int64_t kVectorInputs = sizeof(T) == 2 ? 2 : 1;

constexpr int64_t panels_of(int64_t n) { return (n + kPanelOutputs - 1) / kPanelOutputs; }

template <typename T>
constexpr int64_t panel_elements(int64_t k) {
  return (k + kVectorInputs<T> - 1) / kVectorInputs<T> * kVectorInputs<T> * kPanelOutputs;
}

// Elements of an [n, k] matrix in packed form.
template <typename T>
constexpr int64_t packed_elements(int64_t n, int64_t k) {
  return panels_of(n) * panel_elements<T>(k);
}

// The index in a panel of output j, input i.
template <typename T>
constexpr int64_t panel_index(int64_t j, int64_t i) {
  constexpr int64_t inputs = kVectorInputs<T>;
  return (i / inputs * kPanelOutputs + j) * inputs + i % inputs;
}

// An [n, k] matrix in panels: contiguous at `data`; or, for adapters in the paged pool, in separate
// pieces of panels_per_piece panels each, or with the panels themselves cut into pieces
// (kernels/types/lora.h).
template <typename T>
struct Panels {
  const T* data = nullptr;
  int64_t n = 0;  // outputs
  int64_t k = 0;  // inputs
  const T* const* pieces = nullptr;
  int64_t panels_per_piece = 0;
  int64_t inputs_per_piece = 0;  // if panels are cut; a multiple of kCutInputs

  bool cut() const { return inputs_per_piece > 0; }
  int64_t runs() const { return cut() ? (k + inputs_per_piece - 1) / inputs_per_piece : 1; }
  // One run of inputs of a cut matrix, as an [n, inputs] matrix that is not cut.
  Panels run(int64_t index) const {
    const int64_t first = index * inputs_per_piece;
    return {nullptr, n, k - first < inputs_per_piece ? k - first : inputs_per_piece,
            pieces + index * panels_of(n), 1};
  }

  // For panels that are not cut. Always inlined: otherwise the linker could use a copy compiled for
  // one instruction set in the code of another.
  __attribute__((always_inline)) const T* panel(int64_t index) const {
    const T* begin = pieces ? pieces[index / panels_per_piece] : data;
    return begin + (pieces ? index % panels_per_piece : index) * panel_elements<T>(k);
  }
  // The vector starting at input vector `vector`; those up to the next multiple of kCutInputs
  // follow it.
  __attribute__((always_inline)) const T* vector(int64_t index, int64_t vector) const {
    constexpr int64_t size = kVectorInputs<T> * kPanelOutputs;
    if (inputs_per_piece == 0) return panel(index) + vector * size;
    const int64_t per_run = inputs_per_piece / kVectorInputs<T>,
                  all = (n + kPanelOutputs - 1) / kPanelOutputs;
    return pieces[vector / per_run * all + index] + vector % per_run * size;
  }
};

// A view of an adapter's factor with elements of type T.
template <typename T>
Panels<T> panels_of_factor(const LoraFactor& factor, int64_t n, int64_t k) {
  return {static_cast<const T*>(factor.data),
          n,
          k,
          reinterpret_cast<const T* const*>(factor.pieces),
          factor.panels_per_piece,
          factor.inputs_per_piece};
}

// Packs w, [n, k] row-major, into packed_elements<T>(n, k) contiguous elements.
template <typename T>
void pack_panels(const T* w, int64_t n, int64_t k, T* panels,
                 const ParallelFor& parallel = serial_for);
// Unpacks panels into w, [n, k] row-major.
template <typename T>
void unpack_panels(const Panels<T>& panels, T* w);

}  // namespace valora::kernels
