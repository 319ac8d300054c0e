// What a product kernel (KernelSet::multiply) is asked for: one thread, a range of panels.
#pragma once

#include <cstdint>

#include "kernels/cpu/product/panels.h"
#include "kernels/tiles/tile.h"

namespace valora::kernels {

enum class Epilogue : uint8_t {
  kStore,       // y = T(scale · sum + bias)
  kStoreFloat,  // the same in float
  kAddFloat,    // y += scale · sum, float
};

// x · wᵀ over panels [panel_begin, panel_end).
template <typename T>
struct Product {
  const T* x = nullptr;  // [m, w.k], rows ldx elements apart
  int64_t m = 0;
  int64_t ldx = 0;
  Panels<T> w;
  int64_t panel_begin = 0;
  int64_t panel_end = 0;
  Epilogue epilogue = Epilogue::kStore;
  float scale = 1;
  const float* bias = nullptr;  // [w.n], or none
  void* y = nullptr;            // y[0] is row 0, output first_output
  int64_t ldy = 0;
  int64_t first_output = 0;
  const T* const* fetch = nullptr;  // of each panel, as much memory again to be fetched meanwhile;
                                    // none: the next panels
  CpuTile tile;  // one that the instruction set does not have is cut down to one that it has
};

}  // namespace valora::kernels
