#include "kernels/cpu/project.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/product_bodies.h"
#include "kernels/cpu/shares.h"
#include "kernels/tiles/choose.h"

namespace valora::kernels {
namespace {

constexpr int64_t kShrinkRows = 64;          // of one piece of a segment's shrink
constexpr int64_t kRowChunk = 126;           // rows whose inputs and sums stay in the second-level cache
constexpr int64_t kChunkBytes = 256 << 10;   // of weights that stay there while rows pass
constexpr int64_t kUnits = 28;               // pieces that a launch has at least where it can: enough for even shares
constexpr int64_t kMaxChunk = 64;            // panels of a piece at most
constexpr int64_t kFetchedRows = 16;         // up to so many rows a unit waits for its weights, and is told of them early
constexpr int64_t kSerialProducts = 1 << 16; // below this a second thread costs more than it brings

void pause() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

template <typename T>
ProductShape shape_of(ProductKind kind, int64_t m, const Panels<T>& w) {
  return {kind, sizeof(T) == 4, isa(), m, w.n, w.k};
}

constexpr int64_t kMaxPanels = 16;  // of an adapter's A whose successor is fetched: rank 256

// Where the intermediate of one segment's part lies.
struct ShrinkTask {
  int64_t segment, slice, row_begin, row_end;
};

// A run of outputs of one slice (with kSiluMul: of both) over a run of rows.
struct Unit {
  int64_t slice, panel_begin, panel_end, row_begin, row_end;
};

template <typename T>
class Projection {
 public:
  Projection(const T* x, int64_t m, int64_t ldx, std::span<const Slice<T>> slices,
             std::span<const LoraSegment<T>> segments, Combine combine)
      : x_(x), m_(m), ldx_(ldx), slices_(slices), segments_(segments), combine_(combine), bodies_(product_bodies<T>()) {
    plan_shrinks();
    for (size_t s = 0; s < slices.size(); ++s) tiles_[s] = choose_tile(shape_of(ProductKind::kDense, m, slices[s].w));
    const size_t planned = combine == Combine::kSiluMul ? 1 : slices.size();
    for (size_t s = 0; s < planned; ++s) plan_units(static_cast<int64_t>(s));
  }

  void run(const ParallelFor& parallel) {
    Shares shrinks(static_cast<int64_t>(shrinks_.size())), units(static_cast<int64_t>(units_.size()));
    const auto body = [&](int64_t begin, int64_t end) {
      const int64_t first = shrinks.count() * begin / units.count(), last = shrinks.count() * end / units.count();
      shrinks.work(first, last, [&](int64_t i) { shrink(i); });
      units.work(begin, end, [&](int64_t i) { run_unit(units_[i]); });
    };
    if (products() < kSerialProducts) body(0, units.count());
    else parallel(0, units.count(), 1, body);
  }

 private:
  int64_t products() const {
    int64_t sum = 0;
    for (const Slice<T>& slice : slices_) sum += m_ * slice.w.n * slice.w.k;
    return sum;
  }

  void plan_shrinks() {
    int64_t elements = 0;
    for (size_t g = 0; g < segments_.size(); ++g)
      for (size_t s = 0; s < slices_.size(); ++s) {
        const LoraSegment<T>& segment = segments_[g];
        const int64_t tokens = segment.token_end - segment.token_begin, rank = segment.parts[s].a.n;
        places_.push_back(elements);
        expand_tiles_.emplace_back();
        if (rank == 0 || tokens <= 0) continue;
        expand_tiles_.back() = choose_tile(shape_of(ProductKind::kExpand, std::min(tokens, kRowChunk), segment.parts[s].b));
        elements += tokens * rank;
        const int64_t pieces = (tokens + kShrinkRows - 1) / kShrinkRows;
        for (int64_t i = 0; i < pieces; ++i)
          shrinks_.push_back({static_cast<int64_t>(g), static_cast<int64_t>(s), segment.token_begin + tokens * i / pieces,
                              segment.token_begin + tokens * (i + 1) / pieces});
      }
    low_.reset(new T[elements]);
  }

  void plan_units(int64_t s) {
    const Slice<T>& slice = slices_[s];
    const int64_t group = tiles_[s].panels, panels = panels_of(slice.w.n), groups = (panels + group - 1) / group;
    const int64_t row_chunks = (m_ + kRowChunk - 1) / kRowChunk;
    int64_t chunk = group;
    if (row_chunks > 1) {
      const int64_t bytes = group * panel_elements<T>(slice.w.k) * static_cast<int64_t>(sizeof(T));
      chunk *= std::clamp<int64_t>(kChunkBytes / std::max<int64_t>(1, bytes), 1, std::max<int64_t>(1, groups / 8));
    } else {
      // Each segment pays once a piece: as few as keep the shares even.
      while (chunk < kMaxChunk && panels / (2 * chunk) >= (chunk < 4 ? kUnits / 2 : kUnits)) chunk *= 2;
    }
    for (int64_t panel = 0; panel < panels; panel += chunk)
      for (int64_t r = 0; r < row_chunks; ++r)
        units_.push_back({s, panel, std::min(panels, panel + chunk), m_ * r / row_chunks, m_ * (r + 1) / row_chunks});
  }

  T* low(int64_t segment, int64_t slice) { return low_.get() + places_[segment * slices_.size() + slice]; }

  // The panels of the task after this one, to be fetched meanwhile; none where it has fewer.
  bool next_panels(int64_t index, const T* (&next)[kMaxPanels]) const {
    if (index + 1 >= static_cast<int64_t>(shrinks_.size())) return false;
    const auto& a = segments_[shrinks_[index + 1].segment].parts[shrinks_[index + 1].slice].a;
    const int64_t panels = panels_of(segments_[shrinks_[index].segment].parts[shrinks_[index].slice].a.n);
    if (panels_of(a.n) < panels || panels > kMaxPanels) return false;
    for (int64_t i = 0; i < panels; ++i) next[i] = a.panel(i);
    return true;
  }

  void shrink(int64_t index) {
    const ShrinkTask& task = shrinks_[index];
    const T* next[kMaxPanels];
    const LoraSegment<T>& segment = segments_[task.segment];
    const LowRank<T>& part = segment.parts[task.slice];
    Product<T> p;
    p.x = x_ + task.row_begin * ldx_;
    p.m = task.row_end - task.row_begin;
    p.ldx = ldx_;
    p.w = part.a;
    p.panel_end = panels_of(part.a.n);
    p.scale = part.coefficient;
    p.y = low(task.segment, task.slice) + (task.row_begin - segment.token_begin) * part.a.n;
    p.ldy = part.a.n;
    p.tile = choose_tile(shape_of(ProductKind::kShrink, p.m, p.w));
    if (p.m <= kFetchedRows && next_panels(index, next)) p.fetch = next;
    bodies_.multiply(p);
    shrunk_.fetch_add(1, std::memory_order_release);
  }

  void wait_for_shrinks() const {
    while (shrunk_.load(std::memory_order_acquire) < static_cast<int64_t>(shrinks_.size())) pause();
  }

  bool touched(int64_t s, const Unit& unit) const {
    for (const LoraSegment<T>& segment : segments_)
      if (segment.parts[s].a.n > 0 && segment.token_begin < unit.row_end && segment.token_end > unit.row_begin) return true;
    return false;
  }

  Product<T> dense(int64_t s, const Unit& unit) const {
    Product<T> p;
    p.x = x_ + unit.row_begin * ldx_;
    p.m = unit.row_end - unit.row_begin;
    p.ldx = ldx_;
    p.w = slices_[s].w;
    p.panel_begin = unit.panel_begin;
    p.panel_end = unit.panel_end;
    p.bias = slices_[s].bias;
    p.tile = tiles_[s];
    return p;
  }

  void run_unit(const Unit& unit) {
    if (combine_ == Combine::kSiluMul) return run_gated(unit);
    const Slice<T>& slice = slices_[unit.slice];
    const int64_t first = unit.panel_begin * kPanelOutputs, last = std::min(slice.w.n, unit.panel_end * kPanelOutputs);
    const int64_t at = unit.row_begin * slice.ldy + first, width = last - first, rows = unit.row_end - unit.row_begin;
    if (slice.y_float) return sum_into(unit.slice, unit, slice.y_float + at, slice.ldy);
    if (touched(unit.slice, unit)) {
      float* sums = scratch(rows * width);
      sum_into(unit.slice, unit, sums, width);
      return round_rows(sums, rows, width, slice.y + at, slice.ldy);
    }
    Product<T> p = dense(unit.slice, unit);
    p.y = slice.y + at;
    p.ldy = slice.ldy;
    p.first_output = first;
    bodies_.multiply(p);
  }

  void run_gated(const Unit& unit) {
    const Slice<T>& slice = slices_[0];
    const int64_t first = unit.panel_begin * kPanelOutputs, last = std::min(slice.w.n, unit.panel_end * kPanelOutputs);
    const int64_t width = last - first, rows = unit.row_end - unit.row_begin;
    float* gate = scratch(2 * rows * width);
    float* up = gate + rows * width;
    sum_into(0, unit, gate, width);
    sum_into(1, unit, up, width);
    silu_mul_rows(gate, up, rows, width, slice.y + unit.row_begin * slice.ldy + first, slice.ldy);
  }

  // The unit's outputs of one slice, adapters and all, in fp32.
  void sum_into(int64_t s, const Unit& unit, float* sums, int64_t ld) {
    Product<T> p = dense(s, unit);
    p.finish = Finish::kStoreFloat;
    p.y = sums;
    p.ldy = ld;
    p.first_output = unit.panel_begin * kPanelOutputs;
    if (p.m <= kFetchedRows) fetch_expands(s, unit);
    bodies_.multiply(p);
    for (size_t g = 0; g < segments_.size(); ++g) expand(static_cast<int64_t>(g), s, unit, sums, ld);
  }

  // The adapters' panels of this unit lie here and there in memory, too short a run each for the CPU to see it coming.
  void fetch_expands(int64_t s, const Unit& unit) const {
    for (const LoraSegment<T>& segment : segments_) {
      const Panels<T>& b = segment.parts[s].b;
      if (segment.parts[s].a.n == 0 || segment.token_begin >= unit.row_end || segment.token_end <= unit.row_begin) continue;
      for (int64_t panel = unit.panel_begin; panel < unit.panel_end; ++panel) {
        const T* line = b.panel(panel);
        for (int64_t i = 0; i < panel_elements<T>(b.k); i += 64 / static_cast<int64_t>(sizeof(T))) __builtin_prefetch(line + i, 0, 2);
      }
    }
  }

  void expand(int64_t g, int64_t s, const Unit& unit, float* sums, int64_t ld) {
    const LoraSegment<T>& segment = segments_[g];
    const LowRank<T>& part = segment.parts[s];
    const int64_t begin = std::max(segment.token_begin, unit.row_begin), end = std::min(segment.token_end, unit.row_end);
    if (part.a.n == 0 || begin >= end) return;
    wait_for_shrinks();
    Product<T> p;
    p.x = low(g, s) + (begin - segment.token_begin) * part.a.n;
    p.m = end - begin;
    p.ldx = part.a.n;
    p.w = part.b;
    p.panel_begin = unit.panel_begin;
    p.panel_end = unit.panel_end;
    p.finish = Finish::kAddFloat;
    p.y = sums + (begin - unit.row_begin) * ld;
    p.ldy = ld;
    p.first_output = unit.panel_begin * kPanelOutputs;
    p.tile = expand_tiles_[g * slices_.size() + s];
    bodies_.multiply(p);
  }

  static float* scratch(int64_t floats) {
    thread_local std::vector<float> memory;
    if (static_cast<int64_t>(memory.size()) < floats) memory.resize(floats);
    return memory.data();
  }

  const T* x_;
  int64_t m_, ldx_;
  std::span<const Slice<T>> slices_;
  std::span<const LoraSegment<T>> segments_;
  Combine combine_;
  const ProductBodies<T>& bodies_;
  Tile tiles_[kMaxSlices];
  std::vector<ShrinkTask> shrinks_;
  std::vector<Unit> units_;
  std::vector<int64_t> places_;  // in low_, of each segment's parts
  std::vector<Tile> expand_tiles_;  // of each segment's parts
  std::unique_ptr<T[]> low_;     // the rank-wide intermediates
  std::atomic<int64_t> shrunk_ = 0;
};

}  // namespace

template <typename T>
void project(const T* x, int64_t m, int64_t ldx, std::span<const Slice<T>> slices,
             std::span<const LoraSegment<T>> segments, Combine combine, const ParallelFor& parallel) {
  if (m > 0 && !slices.empty()) Projection<T>(x, m, ldx, slices, segments, combine).run(parallel);
}

#define VALORA_INSTANTIATE(T)                                                                                \
  template void project(const T*, int64_t, int64_t, std::span<const Slice<T>>, std::span<const LoraSegment<T>>, \
                        Combine, const ParallelFor&);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)

}  // namespace valora::kernels
