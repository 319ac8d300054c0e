// Sums over long inputs in blocks of them: a group of panels that several blocks of rows read one after the other
// must not leave the second-level cache between them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cpu/product_bodies.h"

namespace valora::kernels {

// Blocks that a product's inputs are cut into; 1 where each panel is read once, or stays.
template <typename T>
int64_t input_blocks(const Product<T>& p) {
  constexpr int64_t kGroupBytes = 512 << 10;  // half of the cache
  if (p.m <= p.tile.rows) return 1;
  const int64_t bytes = p.tile.panels * panel_elements<T>(p.w.k) * static_cast<int64_t>(sizeof(T));
  return std::max<int64_t>(1, (bytes + kGroupBytes - 1) / kGroupBytes);
}

// p, whose finish is kStoreFloat, in so many blocks of inputs.
template <typename T>
void multiply_in_blocks(const ProductBodies<T>& bodies, const Product<T>& p, int64_t blocks) {
  if (blocks == 1) return bodies.multiply(p);
  const int64_t vectors = (p.w.k + kVectorInputs<T> - 1) / kVectorInputs<T>;
  thread_local std::vector<const T*> pieces, next;
  pieces.resize(std::max<size_t>(pieces.size(), p.panel_end));
  next.resize(std::max<size_t>(next.size(), p.panel_end));
  Product<T> part = p;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t first = vectors * b / blocks * kVectorInputs<T>, last = vectors * (b + 1) / blocks * kVectorInputs<T>;
    for (int64_t panel = p.panel_begin; panel < p.panel_end; ++panel) {
      pieces[panel] = p.w.panel(panel) + first * kPanelOutputs;
      // The next block of these panels; after the last block the first one of the panels behind them.
      const int64_t behind = std::min(panel + p.tile.panels, panels_of(p.w.n) - 1);
      next[panel] = b + 1 < blocks ? p.w.panel(panel) + last * kPanelOutputs : p.w.panel(behind);
    }
    part.x = p.x + first;
    part.w = {nullptr, p.w.n, std::min(last, p.w.k) - first, pieces.data(), 1};
    part.fetch = next.data();
    bodies.multiply(part);
    part.finish = Finish::kAddFloat;
    part.bias = nullptr;
  }
}

}  // namespace valora::kernels
