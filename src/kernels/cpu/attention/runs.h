// Bidirectional attention within runs of rows: the images, frames and windows of vision towers.
// store_runs() packs keys and values once; attend_runs() then takes queries in parts of any size. T
// is float or bf16; outputs are rounded to T once. Arguments are not checked.
#pragma once

#include <cstdint>

#include "base/threads/parallel.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/types/runs.h"

namespace valora::kernels {

// Packed keys and values, runs.blocks() * kv_elements<T>(heads, dim) elements, which need not be
// initialised.
template <typename T>
struct PackedRuns {
  const Runs& runs;
  T* data = nullptr;
  int64_t heads = 0, dim = 0;

  // A head's block `block` of a run. The blocks of a head are adjacent.
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

// Attention of rows [begin, begin + count) over their whole runs, which must be completely packed.
// q, o: [count, heads, dim].
template <typename T>
void attend_runs(Heads<const T> q, Heads<T> o, int64_t begin, int64_t count, float scale,
                 const PackedRuns<T>& packed, const ParallelFor& parallel);

}  // namespace valora::kernels
