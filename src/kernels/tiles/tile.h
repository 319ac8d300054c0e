// A product's tile: how many sums stay in registers while the inputs are walked through (DESIGN §4).
#pragma once

#include <cstdint>

namespace valora::kernels {

struct Tile {
  uint8_t rows = 1;    // of x, at most: m rows are cut into even blocks of no more than these
  uint8_t panels = 1;  // of 16 outputs each: 1, 2, 3, 4 or 8
  uint8_t chains = 1;  // sums an output has, over every chains-th input, added at the end: 1, 2, 4 or 8

  friend bool operator==(const Tile&, const Tile&) = default;
};

}  // namespace valora::kernels
