// Bidirectional attention within runs of rows: the images, frames and windows of the vision towers.
// Keys and values are packed once, by store_runs. Queries may follow in any parts, by attend_runs.
// T is float or bf16; outputs are rounded to T once. Arguments are not checked.
#pragma once

#include <cstdint>

#include "base/parallel.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/types/runs.h"

namespace valora::kernels {

// Packed keys and values, runs.blocks() * kv_elements<T>(heads, dim) elements. They need not be
// initialised.
template <typename T>
struct PackedRuns {
  const Runs& runs;
  T* data = nullptr;
  int64_t heads = 0, dim = 0;

  // Block `block` of a run, of one head. The blocks of a head are adjacent.
  T* keys(int64_t run, int64_t head, int64_t block) const {
    return data + runs.first_block(run) * kv_elements<T>(heads, dim) +
           (head * runs.blocks(run) + block) * kv_elements<T>(1, dim);
  }
  T* values(int64_t run, int64_t head, int64_t block) const {
    return keys(run, head, block) + key_elements<T>(dim);
  }
};

// Packs the keys and values of rows [begin, begin + count). k, v: [count, heads, dim]. Rows must be
// packed in ascending order.
template <typename T>
void store_runs(Heads<const T> k, Heads<const T> v, int64_t begin, int64_t count,
                const PackedRuns<T>& packed, const ParallelFor& parallel);

// The attention of rows [begin, begin + count) to their whole runs, all of which must be packed.
// q, o: [count, heads, dim].
template <typename T>
void attend_runs(Heads<const T> q, Heads<T> o, int64_t begin, int64_t count, float scale,
                 const PackedRuns<T>& packed, const ParallelFor& parallel);

}  // namespace valora::kernels
