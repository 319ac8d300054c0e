// Where the parts of a sequence's state are placed in its pool blocks. No part straddles blocks,
// and each begins at a cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace valora::kernels {

// A model's layers with a state, all of the same shape: a window of the last inputs of a causal
// convolution, and a matrix per value head (gated_delta.h).
struct StateShape {
  int64_t layers = 0;              // 0: the model has no such layers
  int64_t channels = 0, taps = 0;  // the convolution's; the window has taps - 1 rows
  int64_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
  size_t element = 4;  // bytes per channel in the window

  // Bytes of a state, excluding padding to whole tiles and cache lines.
  int64_t bytes() const {
    return layers * ((taps - 1) * channels * static_cast<int64_t>(element) +
                     value_heads * key_dim * value_dim * static_cast<int64_t>(sizeof(float)));
  }
};

// Adjacent columns of a head's matrix.
inline constexpr int64_t kStateTile = 32;
// Floats of a head's matrix: [tiles, key_dim, kStateTile], with the last tile padded.
constexpr int64_t head_floats(const StateShape& s) {
  return (s.value_dim + kStateTile - 1) / kStateTile * kStateTile * s.key_dim;
}

class StateLayout {
 public:
  StateLayout() = default;
  // block_bytes: a multiple of 64, and at least least_block_bytes().
  StateLayout(const StateShape& shape, size_t block_bytes);

  static size_t least_block_bytes(const StateShape& shape);

  const StateShape& shape() const { return shape_; }
  int32_t blocks() const { return blocks_; }  // per state; 0 without layers

  struct Place {
    int32_t block = 0;  // index in the state's list
    size_t offset = 0;  // bytes
  };
  Place row(int64_t layer, int64_t row) const { return places_[layer * parts() + row]; }
  Place head(int64_t layer, int64_t head) const {
    return places_[layer * parts() + shape_.taps - 1 + head];
  }

 private:
  int64_t parts() const { return shape_.taps - 1 + shape_.value_heads; }

  StateShape shape_;
  int32_t blocks_ = 0;
  std::vector<Place> places_;
};

}  // namespace valora::kernels
