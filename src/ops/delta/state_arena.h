// Sequences' states besides KV, in the blocks of a pool.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>

#include "kernels/types/spans.h"
#include "kernels/types/state_layout.h"
#include "ops/device/pool_memory.h"

namespace valora::ops {

using kernels::StateLayout;
using kernels::StateShape;
using kernels::StateSpan;

class StateArena {
 public:
  StateArena() = default;
  // The layout must have been made for the pool's block size. device: the pool's.
  StateArena(const PoolMemory& pool, StateLayout layout, at::Device device);

  const StateShape& shape() const { return layout_.shape(); }
  int32_t blocks() const { return layout_.blocks(); }  // of a state
  const PoolMemory& pool() const { return pool_; }

  // In host memory. blocks: the block list of a state. row(): a row of a layer's convolution
  // window, oldest first. matrix(): the matrix of a head.
  void* row(const int32_t* blocks, int64_t layer, int64_t row) const {
    return at(blocks, layout_.row(layer, row));
  }
  float* head(const int32_t* blocks, int64_t layer, int64_t head) const {
    return static_cast<float*>(at(blocks, layout_.head(layer, head)));
  }

  // In a GPU's memory: where the parts of each layer's states are, int32 [layers, taps - 1 +
  // value_heads, 2], a block of the list and an offset in bytes; undefined on CPUs.
  const at::Tensor& places() const { return places_; }

 private:
  void* at(const int32_t* blocks, StateLayout::Place place) const {
    return pool_.block(blocks[place.block]) + place.offset;
  }

  PoolMemory pool_;
  StateLayout layout_;
  at::Tensor places_;
};

}  // namespace valora::ops
