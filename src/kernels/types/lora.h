// A step's adapters as the kernels of every device read them: plain data, made once per step and
// read by every projection. Elements are of the step's dtype, in the form of its weights.
#pragma once

#include <cstdint>

namespace valora::kernels {

// One factor of an adapter's product, [n, k] in panels: side by side at `data`, or in pieces of
// `panels_per_piece` panels each, wherever they are.
struct LoraFactor {
  const void* data = nullptr;
  const void* const* pieces = nullptr;
  int64_t panels_per_piece = 0;
};

// What an adapter adds to one linear: scale · (x Aᵀ) Bᵀ.
struct LoraModule {
  LoraFactor a;      // n = rank, k = in
  LoraFactor b;      // n = out, k = rank
  int64_t rank = 0;  // 0: the adapter does not touch this linear
  int64_t in = 0;
  int64_t out = 0;
  float scale = 1;
};

// Tokens [token_begin, token_end) of the flat batch run under an adapter, whose table has an entry
// for each of the model's modules. The coefficient multiplies each module's scale. Segments of
// several adapters may cover the same tokens: what they add is summed.
struct LoraSegment {
  int64_t token_begin = 0;
  int64_t token_end = 0;
  const LoraModule* modules = nullptr;
  float coefficient = 1;
};

// The entry of a module, or null: index -1 stands for a linear that no adapter is served on.
inline const LoraModule* touched_module(const LoraSegment& segment, int module) {
  if (module < 0 || segment.modules[module].rank == 0) return nullptr;
  return &segment.modules[module];
}

}  // namespace valora::kernels
