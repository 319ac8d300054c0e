#include "kernels/cpu/attention/attention.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/attention/byte_tile.h"
#include "kernels/cpu/attention/query_tile.h"
#include "kernels/cpu/work_queue.h"

namespace valora::kernels {
namespace {

// Keys per task when a sequence is split over its keys: as many bytes of each cache.
template <typename Layer>
constexpr int64_t kSplitKeys = 256;
template <>
constexpr int64_t kSplitKeys<ByteKvLayer> = 512;
constexpr int64_t kFewRows = 16;  // a sequence with more query rows is not split
// Below this product of rows, keys and dim, a second thread does not pay off.
constexpr int64_t kSerialWork = 1 << 17;

struct Task {
  const QuerySpan* span;
  int64_t head;                    // KV head
  int64_t token_begin, token_end;  // within the span
  int64_t key_begin, key_end;
  int64_t partial = -1;  // index of its PartialAttention; -1: the keys are not split
  int64_t partials = 0;  // on the first task of a split: the number of its partials
};

// The first key that a span's tokens from `token` on attend to, rounded down to the start of its
// block.
int64_t first_key(const QuerySpan& span, int64_t token, int64_t window) {
  return first_visible(span.context + token, window) / kBlockTokens * kBlockTokens;
}

bool splits(const QuerySpan& span, int64_t group, int64_t window, int64_t keys) {
  return span.queries * group <= kFewRows &&
         span.context + span.queries - first_key(span, 0, window) > keys;
}

// Tasks are ordered by keys, then head: the heads of a block are adjacent, so memory is read in
// order.
void plan_split(const QuerySpan& span, int64_t kv_heads, int64_t window, int64_t keys,
                int64_t& partials, std::vector<Task>& tasks) {
  const int64_t first = first_key(span, 0, window), end = span.context + span.queries,
                parts = (end - first + keys - 1) / keys;
  for (int64_t p = 0; p < parts; ++p) {
    const int64_t begin = first + p * keys;
    for (int64_t head = 0; head < kv_heads; ++head)
      tasks.push_back({&span, head, 0, span.queries, begin, std::min(end, begin + keys),
                       partials + head * parts + p, p == 0 ? parts : 0});
  }
  partials += kv_heads * parts;
}

void plan_tiles(const QuerySpan& span, int64_t kv_heads, int64_t group, int64_t window,
                std::vector<Task>& tasks) {
  const int64_t tile_tokens = std::max<int64_t>(1, kTileRows / group);
  const int64_t tiles = (span.queries + tile_tokens - 1) / tile_tokens;
  for (int64_t head = 0; head < kv_heads; ++head)
    for (int64_t i = tiles - 1; i >= 0; --i) {  // longest first, for load balance
      const int64_t begin = span.queries * i / tiles, end = span.queries * (i + 1) / tiles;
      tasks.push_back({&span, head, begin, end, first_key(span, begin, window),
                       visible_from(span.context + end - 1, window, span.joint).end});
    }
}

std::vector<Task> plan(std::span<const QuerySpan> spans, int64_t kv_heads, int64_t group,
                       int64_t window, int64_t split_keys, int64_t& partials) {
  std::vector<Task> tasks;
  for (const QuerySpan& span : spans)
    if (splits(span, group, window, split_keys))
      plan_split(span, kv_heads, window, split_keys, partials, tasks);
    else
      plan_tiles(span, kv_heads, group, window, tasks);
  return tasks;
}

// The blocks of a cache that attend() reads, followed by blocks to prefetch, for which only keys
// are set.
template <typename T>
KeyBlocks<T>& blocks_for(const KvLayer<T>&) {
  thread_local KeyBlocks<T> blocks;
  blocks.keys.clear();
  blocks.values.clear();
  return blocks;
}
template <typename T>
void add_block(const KvLayer<T>& layer, int64_t block, int64_t head, KeyBlocks<T>& blocks) {
  blocks.keys.push_back(layer.keys(block, head));
  blocks.values.push_back(layer.values(block, head));
}
template <typename T>
void add_next(const KvLayer<T>& layer, int64_t block, int64_t head, KeyBlocks<T>& blocks) {
  blocks.keys.push_back(layer.keys(block, head));
}

ByteBlocks& blocks_for(const ByteKvLayer& layer) {
  thread_local ByteBlocks blocks;
  blocks.heads.clear();
  blocks.format = layer.format;
  return blocks;
}
void add_block(const ByteKvLayer& layer, int64_t block, int64_t head, ByteBlocks& blocks) {
  blocks.heads.push_back(layer.head(block, head));
}
void add_next(const ByteKvLayer& layer, int64_t block, int64_t head, ByteBlocks& blocks) {
  add_block(layer, block, head, blocks);
}

// Layer: KvLayer<T> or ByteKvLayer.
template <typename T, typename Layer>
class PagedAttention {
 public:
  PagedAttention(Heads<const T> q, Heads<T> o, int64_t heads, float scale, int64_t window,
                 std::span<const QuerySpan> spans, const Layer& layer)
      : q_(q),
        o_(o),
        group_(heads / layer.kv_heads),
        scale_(scale),
        window_(window),
        layer_(layer),
        tasks_(plan(spans, layer.kv_heads, group_, window, kSplitKeys<Layer>, partials_)) {
    for (const Task& task : tasks_)
      if (task.partial >= 0) slot_ = std::max(slot_, partial_floats(tile_of(task)));
    // Kept from call to call: new pages would be cleared each time.
    thread_local std::vector<float> memory;
    memory.resize(std::max<size_t>(memory.size(), partials_ * slot_));
    memory_ = memory.data();
  }

  void run(const ParallelFor& parallel) {
    WorkQueue queue(static_cast<int64_t>(tasks_.size()));
    const auto run_range = [&](int64_t begin, int64_t end) {
      queue.work(begin, end, [&](int64_t i) { run_task(i); });
    };
    if (work() < kSerialWork)
      run_range(0, queue.count());
    else
      parallel(0, queue.count(), 1, run_range);
    for (const Task& task : tasks_)
      if (task.partials > 0) combine(task);
  }

 private:
  int64_t work() const {
    int64_t sum = 0;
    for (const Task& task : tasks_)
      sum += (task.token_end - task.token_begin) * group_ * (task.key_end - task.key_begin) *
             layer_.dim;
    return sum;
  }

  QueryTile<T> tile_of(const Task& task) const {
    QueryTile<T> tile;
    tile.q =
        q_.data + (task.span->begin + task.token_begin) * q_.ld + task.head * group_ * layer_.dim;
    tile.ldq = q_.ld;
    tile.tokens = task.token_end - task.token_begin;
    tile.group = group_;
    tile.dim = layer_.dim;
    tile.scale = scale_;
    tile.visible = task.span->context + task.token_begin + 1;
    tile.window = window_;
    tile.joint = task.span->joint;
    tile.key_begin = task.key_begin;
    tile.key_end = task.key_end;
    return tile;
  }

  T* out_of(const Task& task) const {
    return o_.data + (task.span->begin + task.token_begin) * o_.ld +
           task.head * group_ * layer_.dim;
  }

  auto& find_blocks(const Task& task, const Task& next) const {
    auto& blocks = blocks_for(layer_);
    for (int64_t key = task.key_begin; key < task.key_end; key += kBlockTokens)
      add_block(layer_, task.span->blocks[key / kBlockTokens], task.head, blocks);
    const int64_t first = next.key_begin / kBlockTokens, last = (next.key_end - 1) / kBlockTokens;
    for (int64_t i = 0; i < kAheadBlocks; ++i)
      add_next(layer_, next.span->blocks[std::min(first + i, last)], next.head, blocks);
    return blocks;
  }

  void run_task(int64_t i) {
    thread_local std::vector<float> memory;
    const Task& task = tasks_[i];
    const auto& blocks =
        find_blocks(task, tasks_[std::min<int64_t>(i + 1, std::ssize(tasks_) - 1)]);
    const QueryTile<T> tile = tile_of(task);
    if (task.partial >= 0)
      return attend(tile, blocks, partial_in(memory_ + task.partial * slot_, tile));
    memory.resize(std::max<size_t>(memory.size(), partial_floats(tile)));
    const PartialAttention partial = partial_in(memory.data(), tile);
    attend(tile, blocks, partial);
    write_normalized(tile, partial, out_of(task), o_.ld);
  }

  void combine(const Task& first) {
    const QueryTile<T> tile = tile_of(first);
    const PartialAttention partial = partial_in(memory_ + first.partial * slot_, tile);
    for (int64_t p = 1; p < first.partials; ++p)
      add_partial(tile, partial_in(memory_ + (first.partial + p) * slot_, tile), partial);
    write_normalized(tile, partial, out_of(first), o_.ld);
  }

  Heads<const T> q_;
  Heads<T> o_;
  int64_t group_;
  float scale_;
  int64_t window_;
  Layer layer_;
  int64_t partials_ = 0, slot_ = 0;
  std::vector<Task> tasks_;
  float* memory_ = nullptr;
};

}  // namespace

template <typename T>
void paged_attention(Heads<const T> q, Heads<T> o, int64_t heads, float scale, int64_t window,
                     std::span<const QuerySpan> spans, const KvLayer<T>& layer,
                     const ParallelFor& parallel) {
  PagedAttention<T, KvLayer<T>>(q, o, heads, scale, window, spans, layer).run(parallel);
}

template <typename T>
void paged_attention(Heads<const T> q, Heads<T> o, int64_t heads, float scale, int64_t window,
                     std::span<const QuerySpan> spans, const ByteKvLayer& layer,
                     const ParallelFor& parallel) {
  PagedAttention<T, ByteKvLayer>(q, o, heads, scale, window, spans, layer).run(parallel);
}

#define VALORA_INSTANTIATE(T)                                                      \
  template void paged_attention(Heads<const T>, Heads<T>, int64_t, float, int64_t, \
                                std::span<const QuerySpan>, const KvLayer<T>&,     \
                                const ParallelFor&);                               \
  template void paged_attention(Heads<const T>, Heads<T>, int64_t, float, int64_t, \
                                std::span<const QuerySpan>, const ByteKvLayer&,    \
                                const ParallelFor&);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)
#undef VALORA_INSTANTIATE

}  // namespace valora::kernels
