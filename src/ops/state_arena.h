// Sequences' states besides KV, in the blocks of a pool in host memory.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/types/state_layout.h"
#include "kernels/types/state_span.h"
#include "ops/pool_memory.h"

namespace valora::ops {

using kernels::StateLayout;
using kernels::StateShape;
using kernels::StateSpan;

class StateArena {
 public:
  StateArena() = default;
  // The layout must have been made for the pool's block size.
  StateArena(const PoolMemory& pool, StateLayout layout)
      : pool_(pool), layout_(std::move(layout)) {}

  const StateShape& shape() const { return layout_.shape(); }
  // blocks: the block list of a state. row(): a row of a layer's convolution window, oldest first.
  // matrix(): the matrix of a head.
  void* row(const int32_t* blocks, int64_t layer, int64_t row) const {
    return at(blocks, layout_.row(layer, row));
  }
  float* head(const int32_t* blocks, int64_t layer, int64_t head) const {
    return static_cast<float*>(at(blocks, layout_.head(layer, head)));
  }

 private:
  void* at(const int32_t* blocks, StateLayout::Place place) const {
    return pool_.block(blocks[place.block]) + place.offset;
  }

  PoolMemory pool_;
  StateLayout layout_;
};

}  // namespace valora::ops
