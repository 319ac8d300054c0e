#include "kernels/cpu/attention/runs.h"

#include <algorithm>

#include "kernels/cpu/attention/query_tile.h"
#include "kernels/cpu/work_queue.h"

namespace valora::kernels {
namespace {

// A work item: some rows of one run and one head.
struct Part {
  int64_t run, head;
  int64_t row_begin, row_end;  // in the batch
};

// Divides rows [begin, end) at the ends of runs and into parts of at most `most` rows, ordered by
// run and head so that threads share what they read.
std::vector<Part> cut(const Runs& runs, int64_t heads, int64_t begin, int64_t end, int64_t most) {
  std::vector<Part> parts;
  for (int64_t run = runs.run_of(begin); run < runs.count() && runs.begin(run) < end; ++run) {
    const int64_t first = std::max(begin, runs.begin(run)), last = std::min(end, runs.end(run)),
                  count = (last - first + most - 1) / most;
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t i = 0; i < count; ++i)
        parts.push_back({run, head, first + (last - first) * i / count,
                         first + (last - first) * (i + 1) / count});
  }
  return parts;
}

void share(const std::vector<Part>& parts, const ParallelFor& parallel,
           const std::function<void(const Part&)>& body) {
  WorkQueue queue(static_cast<int64_t>(parts.size()));
  parallel(0, queue.count(), 1, [&](int64_t first, int64_t last) {
    queue.work(first, last, [&](int64_t i) { body(parts[i]); });
  });
}

// The blocks of a run, followed by its first blocks again, with which the next tile starts.
template <typename T>
void find_blocks(const PackedRuns<T>& packed, const Part& part, KeyBlocks<T>& blocks) {
  const int64_t count = packed.runs.blocks(part.run);
  blocks.keys.clear();
  blocks.values.clear();
  for (int64_t b = 0; b < count; ++b) {
    blocks.keys.push_back(packed.keys(part.run, part.head, b));
    blocks.values.push_back(packed.values(part.run, part.head, b));
  }
  for (int64_t i = 0; i < kAheadBlocks; ++i) blocks.keys.push_back(blocks.keys[i % count]);
}

}  // namespace

template <typename T>
void store_runs(Heads<const T> k, Heads<const T> v, int64_t begin, int64_t count,
                const PackedRuns<T>& packed, const ParallelFor& parallel) {
  // One thread handles a whole head, so that the rows of a block are written in order.
  share(cut(packed.runs, packed.heads, begin, begin + count, std::max<int64_t>(1, count)), parallel,
        [&](const Part& part) {
          const int64_t offset = part.head * packed.dim, first = packed.runs.begin(part.run);
          for (int64_t row = part.row_begin; row < part.row_end; ++row) {
            const int64_t block = (row - first) / kBlockTokens;
            store_token(k.data + (row - begin) * k.ld + offset,
                        v.data + (row - begin) * v.ld + offset, packed.dim,
                        (row - first) % kBlockTokens, packed.keys(part.run, part.head, block),
                        packed.values(part.run, part.head, block));
          }
        });
}

template <typename T>
void attend_runs(Heads<const T> q, Heads<T> o, int64_t begin, int64_t count, float scale,
                 const PackedRuns<T>& packed, const ParallelFor& parallel) {
  share(cut(packed.runs, packed.heads, begin, begin + count, kTileRows), parallel,
        [&](const Part& part) {
          thread_local std::vector<float> memory;
          thread_local KeyBlocks<T> blocks;
          const int64_t offset = part.head * packed.dim, row = part.row_begin - begin,
                        length = packed.runs.length(part.run);
          find_blocks(packed, part, blocks);
          const QueryTile<T> tile{q.data + row * q.ld + offset,
                                  q.ld,
                                  part.row_end - part.row_begin,
                                  1,
                                  packed.dim,
                                  scale,
                                  length,
                                  false,
                                  0,
                                  length};
          memory.resize(std::max<size_t>(memory.size(), partial_floats(tile)));
          const PartialAttention partial = partial_in(memory.data(), tile);
          attend(tile, blocks, partial);
          write_normalized(tile, partial, o.data + row * o.ld + offset, o.ld);
        });
}

#define VALORA_INSTANTIATE(T)                                                                      \
  template void store_runs(Heads<const T>, Heads<const T>, int64_t, int64_t, const PackedRuns<T>&, \
                           const ParallelFor&);                                                    \
  template void attend_runs(Heads<const T>, Heads<T>, int64_t, int64_t, float,                     \
                            const PackedRuns<T>&, const ParallelFor&);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)

#undef VALORA_INSTANTIATE

}  // namespace valora::kernels
