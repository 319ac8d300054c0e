// Parts of states in the blocks of a pool.
#pragma once

#include <type_traits>

#include "kernels/cuda/delta.h"

namespace valora::kernels::cuda {

// The address of a layer's part. list: index of the state's first block in the table.
template <typename T>
__device__ inline T* state_part(const StatePool& states, const int32_t* blocks, int list,
                                int part) {
  const StatePlace place = states.places[part];
  return reinterpret_cast<T*>(static_cast<unsigned char*>(states.data) +
                              blocks[list + place.block] * states.block_bytes + place.offset);
}

// A span's inputs of the convolution: those of the step's rows, and those before them.
template <typename T>
struct WindowedRows {
  const T* x;  // the span's first row
  int64_t stride;
  StatePool states;
  const int32_t* blocks;
  int from, before;  // the state before the span's rows, or -1; rows of its window

  // Row t of the span, where the rows before it have negative numbers; null: zeros.
  __device__ const T* row(int t) const {
    if (t >= 0) return x + t * stride;
    return from < 0 ? nullptr : state_part<const T>(states, blocks, from, before + t);
  }
};

}  // namespace valora::kernels::cuda
