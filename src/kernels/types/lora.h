// The adapters of a step in the form that kernels of every device read: plain data, built once per
// step and used by every projection. Factors have the dtype and layout of the model's weights.
#pragma once

#include <bit>
#include <cstdint>

namespace valora::kernels {

// Panels are cut at multiples of this many inputs.
inline constexpr int64_t kCutInputs = 64;

// One factor (A or B) of an adapter, [n, k] in panels: contiguous at `data` or, if `pieces` is set,
// in separate pieces of panels_per_piece panels each. If inputs_per_piece is set, panels are cut:
// piece (run · panels + panel) holds that panel's inputs from run · inputs_per_piece on,
// inputs_per_piece of them, or fewer in the last run.
struct LoraFactor {
  const void* data = nullptr;
  const void* const* pieces = nullptr;
  int64_t panels_per_piece = 0;
  int64_t inputs_per_piece = 0;
};

// An adapter on one linear: y += scale · (x Aᵀ) Bᵀ.
struct LoraModule {
  LoraFactor a;  // n = rank, k = in
  LoraFactor b;  // n = out, k = rank
  int64_t rank = 0;
  int64_t in = 0;
  int64_t out = 0;
  float scale = 1;
};

// The linears that an adapter touches, of all modules of the model: a mixture of experts has tens
// of thousands, of which an adapter may touch a hundred.
struct LoraModules {
  const LoraModule* entries = nullptr;  // of the touched modules, by module
  const uint64_t* touched = nullptr;    // one bit per module of the model
  const uint32_t* before = nullptr;     // per word of `touched`: bits set in the words before it
};

// Applies an adapter to tokens [token_begin, token_end) of the flat batch. The coefficient
// multiplies every module's scale. If several segments cover a token, their products are summed.
struct LoraSegment {
  int64_t token_begin = 0;
  int64_t token_end = 0;
  LoraModules modules;
  float coefficient = 1;
};

// The entry of a module, or null if the adapter does not touch it. Index -1 denotes a linear that
// cannot have adapters.
inline const LoraModule* touched_module(const LoraModules& modules, int module) {
  if (module < 0) return nullptr;
  const uint64_t word = modules.touched[module / 64], bit = uint64_t{1} << (module % 64);
  if ((word & bit) == 0) return nullptr;
  return modules.entries + modules.before[module / 64] + std::popcount(word & (bit - 1));
}
inline const LoraModule* touched_module(const LoraSegment& segment, int module) {
  return touched_module(segment.modules, module);
}

}  // namespace valora::kernels
