// The two halves of the low-rank products, in pieces that the threads of one launch share out: the
// shrinks, each some rows of one segment's part, and the expands into a run of outputs, which wait
// for them.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/kernel_set.h"
#include "kernels/cpu/linear/partition.h"
#include "kernels/cpu/linear/project.h"
#include "kernels/cpu/product/product.h"
#include "kernels/tiles/choose.h"

namespace valora::kernels {

template <typename T>
class LowRankPieces {
 public:
  // x: [m, in], rows ldx elements apart. `tile`: that of every product, in place of the chosen
  // ones.
  LowRankPieces(const T* x, int64_t ldx, std::span<const LoraSegment<T>> segments, size_t slices,
                std::optional<Tile> tile = {})
      : x_(x),
        ldx_(ldx),
        segments_(segments),
        slices_(slices),
        tile_(tile),
        kernels_(kernel_set<T>()) {
    int64_t elements = 0;
    for (size_t g = 0; g < segments.size(); ++g)
      for (size_t s = 0; s < slices; ++s) {
        places_.push_back(elements);
        expand_tiles_.emplace_back();
        elements += plan(g, s);
      }
    low_.reset(new T[elements]);
  }

  int64_t shrinks() const { return static_cast<int64_t>(shrinks_.size()); }

  void shrink(int64_t index) {
    const Shrink& piece = shrinks_[index];
    const T* next[kMaxFetchedPanels];
    const LoraSegment<T>& segment = segments_[piece.segment];
    const LowRank<T>& part = segment.parts[piece.slice];
    Product<T> p;
    p.x = x_ + piece.row_begin * ldx_;
    p.m = piece.row_end - piece.row_begin;
    p.ldx = ldx_;
    p.w = part.a;
    p.panel_end = panels_of(part.a.n);
    p.scale = part.coefficient;
    p.y = low(piece.segment, piece.slice) + (piece.row_begin - segment.token_begin) * part.a.n;
    p.ldy = part.a.n;
    p.tile = tile_of(ProductKind::kShrink, p.m, p.w);
    if (p.m <= kFetchedRows && next_panels(index, next)) p.fetch = next;
    kernels_.multiply(p);
    shrunk_.fetch_add(1, std::memory_order_release);
  }

  // Whether any adapter adds to these rows of a slice.
  bool touched(size_t slice, int64_t row_begin, int64_t row_end) const {
    return std::ranges::any_of(segments_, [&](const auto& segment) {
      return touches(segment, slice, row_begin, row_end);
    });
  }

  // The adapters' panels of a few rows' outputs lie here and there in memory, too short a run each
  // for the CPU to see it coming: told of early, they are there when expand() wants them. It sees
  // those of higher ranks.
  void fetch_expands(size_t slice, int64_t panel_begin, int64_t panel_end, int64_t row_begin,
                     int64_t row_end) const {
    if (row_end - row_begin > kFetchedRows) return;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);  // GCC drops calls of what does nothing but fetch
    for (const LoraSegment<T>& segment : segments_) {
      if (!fetches(segment, slice, row_begin, row_end)) continue;
      const Panels<T>& b = segment.parts[slice].b;
      for (int64_t panel = panel_begin; panel < panel_end; ++panel)
        for (int64_t i = 0; i < panel_elements<T>(b.k); i += kLine)
          __builtin_prefetch(b.panel(panel) + i, 0, 2);
    }
  }

  // Panels of a slice that are best told of together, `most` at most: the CPU drops what its queues
  // do not hold.
  int64_t fetched_together(size_t slice, int64_t most, int64_t row_begin, int64_t row_end) const {
    constexpr int64_t kLinesTogether = 64;
    if (row_end - row_begin > kFetchedRows) return most;
    const int64_t segments = std::ranges::count_if(
        segments_, [&](const auto& s) { return fetches(s, slice, row_begin, row_end); });
    return segments == 0
               ? most
               : std::clamp<int64_t>(kLinesTogether / (segments * kFetchedLines), 1, most);
  }

  // sums: the rows [row_begin, row_end), ld floats apart, of the outputs from panel_begin on. Waits
  // until all shrinks are done: they must be under way in this launch.
  void expand(size_t slice, int64_t panel_begin, int64_t panel_end, int64_t row_begin,
              int64_t row_end, float* sums, int64_t ld) {
    for (size_t g = 0; g < segments_.size(); ++g) {
      const LoraSegment<T>& segment = segments_[g];
      const LowRank<T>& part = segment.parts[slice];
      const int64_t begin = std::max(segment.token_begin, row_begin),
                    end = std::min(segment.token_end, row_end);
      if (part.a.n == 0 || begin >= end) continue;
      wait_for_shrinks();
      Product<T> p;
      p.x = low(g, slice) + (begin - segment.token_begin) * part.a.n;
      p.m = end - begin;
      p.ldx = part.a.n;
      p.w = part.b;
      p.panel_begin = panel_begin;
      p.panel_end = panel_end;
      p.epilogue = Epilogue::kAddFloat;
      p.y = sums + (begin - row_begin) * ld;
      p.ldy = ld;
      p.first_output = panel_begin * kPanelOutputs;
      p.tile = expand_tiles_[g * slices_ + slice];
      kernels_.multiply(p);
    }
  }

 private:
  static constexpr int64_t kShrinkRows = 64;   // of one piece of a segment's shrink
  static constexpr int64_t kFetchedLines = 8;  // of a panel of B, at most: rank 16 in bf16
  static constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));

  static bool touches(const LoraSegment<T>& segment, size_t slice, int64_t row_begin,
                      int64_t row_end) {
    return segment.parts[slice].a.n > 0 && segment.token_begin < row_end &&
           segment.token_end > row_begin;
  }
  static bool fetches(const LoraSegment<T>& segment, size_t slice, int64_t row_begin,
                      int64_t row_end) {
    return touches(segment, slice, row_begin, row_end) &&
           panel_elements<T>(segment.parts[slice].b.k) <= kFetchedLines * kLine;
  }

  struct Shrink {
    size_t segment, slice;
    int64_t row_begin, row_end;
  };

  // The panels of the piece after this one, to be fetched meanwhile; none where it has fewer.
  bool next_panels(int64_t index, const T* (&next)[kMaxFetchedPanels]) const {
    if (index + 1 >= shrinks()) return false;
    const Panels<T>& a = segments_[shrinks_[index + 1].segment].parts[shrinks_[index + 1].slice].a;
    const int64_t panels =
        panels_of(segments_[shrinks_[index].segment].parts[shrinks_[index].slice].a.n);
    if (panels_of(a.n) < panels || panels > kMaxFetchedPanels) return false;
    for (int64_t i = 0; i < panels; ++i) next[i] = a.panel(i);
    return true;
  }

  // Cuts one part's shrink into pieces; returns the elements of its intermediate.
  int64_t plan(size_t g, size_t s) {
    const LoraSegment<T>& segment = segments_[g];
    const int64_t tokens = segment.token_end - segment.token_begin, rank = segment.parts[s].a.n;
    if (rank == 0 || tokens <= 0) return 0;
    expand_tiles_.back() =
        tile_of(ProductKind::kExpand, std::min(tokens, kMaxRowsTogether), segment.parts[s].b);
    const int64_t pieces = (tokens + kShrinkRows - 1) / kShrinkRows;
    for (int64_t i = 0; i < pieces; ++i)
      shrinks_.push_back({g, s, segment.token_begin + tokens * i / pieces,
                          segment.token_begin + tokens * (i + 1) / pieces});
    return tokens * rank;
  }

  Tile tile_of(ProductKind kind, int64_t m, const Panels<T>& w) const {
    return tile_ ? *tile_ : choose_tile({kind, sizeof(T) == 4, isa(), m, w.n, w.k});
  }

  T* low(size_t segment, size_t slice) { return low_.get() + places_[segment * slices_ + slice]; }

  void wait_for_shrinks() const {
    while (shrunk_.load(std::memory_order_acquire) < shrinks()) {
#ifdef __x86_64__
      __builtin_ia32_pause();
#endif
    }
  }

  const T* x_;
  int64_t ldx_;
  std::span<const LoraSegment<T>> segments_;
  size_t slices_;
  std::optional<Tile> tile_;
  const KernelSet<T>& kernels_;
  std::vector<Shrink> shrinks_;
  std::vector<int64_t> places_;     // in low_, of each segment's parts
  std::vector<Tile> expand_tiles_;  // of the same
  std::unique_ptr<T[]> low_;        // the rank-wide intermediates
  std::atomic<int64_t> shrunk_ = 0;
};

}  // namespace valora::kernels
