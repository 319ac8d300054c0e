// Maps a thread block's index to its linear and tile.
#pragma once

#include "kernels/cuda/merge.h"
#include "kernels/cuda/merge/tile.h"

namespace valora::kernels::cuda {

struct MergeTile {
  const MergeItem* item;
  int first_out, first_in, end_in;
};

// rows: outputs per thread block.
__device__ inline MergeTile find_tile(const DeviceMerge* merges, int count, int rows) {
  const int64_t tile = blockIdx.x;
  int low = 0, high = count;  // merges[low].first_tile <= tile < merges[high].first_tile
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (merges[middle].first_tile <= tile ? low : high) = middle;
  }
  const MergeItem& item = merges[low].item;
  const int local = static_cast<int>(tile - merges[low].first_tile);
  const int across = (item.module.in + kMergeColumns - 1) / kMergeColumns;
  const int first_in = local % across * kMergeColumns;
  return {&item, local / across * rows, first_in, min(first_in + kMergeColumns, item.module.in)};
}

}  // namespace valora::kernels::cuda
