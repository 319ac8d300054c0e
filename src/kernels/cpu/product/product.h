// Arguments of the product kernel KernelSet::multiply. Each call computes a range of panels on one
// thread.
#pragma once

#include <cstdint>

#include "kernels/cpu/product/panels.h"
#include "kernels/tiles/tile.h"

namespace valora::kernels {

enum class Epilogue : uint8_t {
  kStore,       // y = T(scale · sum + bias)
  kStoreFloat,  // y = scale · sum + bias in fp32
  kAddFloat,    // y += scale · sum in fp32; no bias
};

// Computes x · wᵀ for panels [panel_begin, panel_end) of w, with sums in fp32.
template <typename T>
struct Product {
  const T* x = nullptr;  // [m, w.k] with a row stride of ldx elements
  int64_t m = 0;
  int64_t ldx = 0;
  Panels<T> w;
  int64_t panel_begin = 0;
  int64_t panel_end = 0;
  Epilogue epilogue = Epilogue::kStore;
  float scale = 1;
  const float* bias = nullptr;  // [w.n], or null
  void* y = nullptr;            // T or float (epilogue); y[0] is row 0, output first_output
  int64_t ldy = 0;              // row stride of y in elements
  int64_t first_output = 0;
  // Indexed by panel: memory of a panel's size to prefetch into L2 during the product. Null: the
  // panels of w that follow.
  const T* const* fetch = nullptr;
  CpuTile tile;  // reduced if it exceeds the registers of the instruction set
};

}  // namespace valora::kernels
