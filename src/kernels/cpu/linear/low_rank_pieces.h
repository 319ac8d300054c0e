// The low-rank products of one launch, divided into pieces for its threads. A shrink computes x Aᵀ
// for some rows of one segment on one slice. An expand waits until all shrinks are done and adds
// the product with Bᵀ to a range of outputs.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/threads/spin.h"
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
  // x: [m, in] with a row stride of ldx elements. modules: module index per slice; -1: none. tile:
  // replaces the tuned tiles for all products.
  LowRankPieces(const T* x, int64_t ldx, std::span<const LoraSegment> segments,
                const std::array<int, kMaxSlices>& modules, std::optional<CpuTile> tile = {})
      : x_(x), ldx_(ldx), tile_(tile), kernels_(kernel_set<T>()) {
    if (segments.empty()) return;
    int64_t elements = 0;
    for (size_t s = 0; s < modules.size(); ++s) {
      for (size_t g = 0; g < segments.size(); ++g)
        elements += add_part(segments[g], g, modules[s], elements);
      ends_[s] = parts_.size();
    }
    cut_shrinks(segments.size());
    low_.reset(new T[elements]);
  }

  int64_t shrinks() const { return static_cast<int64_t>(shrinks_.size()); }
  // Any module touched by a segment; null if there is none.
  const LoraModule* first_module() const { return parts_.empty() ? nullptr : parts_[0].module; }
  // Multiply-adds of the slice's expands per output, summed over all rows.
  int64_t products_per_output(size_t slice) const {
    int64_t sum = 0;
    for (const Part& part : parts_of(slice)) sum += part.tokens() * part.module->rank;
    return sum;
  }

  void shrink(int64_t index) {
    const Shrink& piece = shrinks_[index];
    const T* next[kMaxFetchedPanels];
    const Part& part = parts_[piece.part];
    const int64_t rank = part.module->rank;
    Product<T> p;
    p.x = x_ + piece.row_begin * ldx_;
    p.m = piece.row_end - piece.row_begin;
    p.ldx = ldx_;
    p.w = part.a();
    p.panel_end = panels_of(rank);
    p.scale = part.coefficient;
    p.y = low_.get() + part.low + (piece.row_begin - part.token_begin) * rank;
    p.ldy = rank;
    p.tile = tile_of(ProductKind::kShrink, p.m, p.w);
    if (p.w.cut()) {
      multiply_runs(p);
    } else {
      if (p.m <= kFetchedRows && next_panels(index, next)) p.fetch = next;
      kernels_.multiply(p);
    }
    shrunk_.fetch_add(1, std::memory_order_release);
  }

  // True if an adapter contributes to these rows of a slice.
  bool touched(size_t slice, int64_t row_begin, int64_t row_end) const {
    return std::ranges::any_of(parts_of(slice),
                               [&](const Part& part) { return part.covers(row_begin, row_end); });
  }

  // Prefetches panels of B for a later expand() of few rows. At low ranks, panels are scattered and
  // too short for the hardware prefetcher; it does detect those of higher ranks.
  void fetch_expands(size_t slice, int64_t panel_begin, int64_t panel_end, int64_t row_begin,
                     int64_t row_end) const {
    if (row_end - row_begin > kFetchedRows) return;
    // Otherwise GCC removes calls to a function that only prefetches.
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    for (const Part& part : parts_of(slice)) {
      if (!fetches(part, row_begin, row_end)) continue;
      const Panels<T> b = part.b();
      for (int64_t panel = panel_begin; panel < panel_end; ++panel)
        for (int64_t i = 0; i < panel_elements<T>(b.k); i += kLine)
          __builtin_prefetch(b.panel(panel) + i, 0, 2);
    }
  }

  // How many of a slice's panels to prefetch at a time, at most `most`: the CPU drops prefetches
  // that exceed its queues.
  int64_t fetched_together(size_t slice, int64_t most, int64_t row_begin, int64_t row_end) const {
    constexpr int64_t kLinesTogether = 64;
    if (row_end - row_begin > kFetchedRows) return most;
    const int64_t parts = std::ranges::count_if(
        parts_of(slice), [&](const Part& part) { return fetches(part, row_begin, row_end); });
    return parts == 0 ? most
                      : std::clamp<int64_t>(kLinesTogether / (parts * kFetchedLines), 1, most);
  }

  // Adds the expands of rows [row_begin, row_end) and panels [panel_begin, panel_end) to `sums`,
  // which begins at row_begin and panel_begin and has a row stride of ld floats. Spins until all
  // shrinks are done, so each of them must be done or running on a thread of this launch.
  void expand(size_t slice, int64_t panel_begin, int64_t panel_end, int64_t row_begin,
              int64_t row_end, float* sums, int64_t ld) {
    for (const Part& part : parts_of(slice)) {
      const int64_t rank = part.module->rank, begin = std::max(part.token_begin, row_begin),
                    end = std::min(part.token_end, row_end);
      if (begin >= end) continue;
      wait_for_shrinks();
      Product<T> p;
      p.x = low_.get() + part.low + (begin - part.token_begin) * rank;
      p.m = end - begin;
      p.ldx = rank;
      p.w = part.b();
      p.panel_begin = panel_begin;
      p.panel_end = panel_end;
      p.epilogue = Epilogue::kAddFloat;
      p.y = sums + (begin - row_begin) * ld;
      p.ldy = ld;
      p.first_output = panel_begin * kPanelOutputs;
      p.tile = part.expand_tile;
      kernels_.multiply(p);
    }
  }

 private:
  static constexpr int64_t kShrinkRows = 64;  // most rows per shrink
  // The longest panel of B that is prefetched, in cache lines: rank 16 in bf16.
  static constexpr int64_t kFetchedLines = 8;
  static constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));  // elements

  // The low-rank product of one segment on one slice.
  struct Part {
    const LoraModule* module;
    size_t segment;
    int64_t token_begin, token_end;
    float coefficient;  // times the module's scale
    int64_t low;        // offset of its intermediate in low_
    CpuTile expand_tile;

    Panels<T> a() const { return panels_of_factor<T>(module->a, module->rank, module->in); }
    Panels<T> b() const { return panels_of_factor<T>(module->b, module->out, module->rank); }
    int64_t tokens() const { return token_end - token_begin; }
    bool covers(int64_t row_begin, int64_t row_end) const {
      return token_begin < row_end && token_end > row_begin;
    }
  };
  struct Shrink {
    size_t part;
    int64_t row_begin, row_end;
  };

  static bool fetches(const Part& part, int64_t row_begin, int64_t row_end) {
    return part.covers(row_begin, row_end) &&
           panel_elements<T>(part.module->rank) <= kFetchedLines * kLine;
  }

  std::span<const Part> parts_of(size_t slice) const {
    const size_t begin = slice == 0 ? 0 : ends_[slice - 1];
    return {parts_.data() + begin, ends_[slice] - begin};
  }

  // → elements of the part's intermediate; 0 if the segment does not touch the module.
  int64_t add_part(const LoraSegment& segment, size_t index, int module, int64_t low) {
    const LoraModule* touched = touched_module(segment, module);
    const int64_t tokens = segment.token_end - segment.token_begin;
    if (!touched || tokens <= 0) return 0;
    Part part{touched,
              index,
              segment.token_begin,
              segment.token_end,
              segment.coefficient * touched->scale,
              low,
              {}};
    part.expand_tile = tile_of(ProductKind::kExpand, std::min(tokens, kMaxRowsTogether), part.b());
    parts_.push_back(part);
    return tokens * touched->rank;
  }

  // Sums the products of all runs of a cut A, rounding once.
  void multiply_runs(const Product<T>& whole) const {
    thread_local std::vector<float> sums;
    sums.resize(static_cast<size_t>(whole.m * whole.ldy));
    for (int64_t r = 0; r < whole.w.runs(); ++r) {
      Product<T> p = whole;
      p.x += r * whole.w.inputs_per_piece;
      p.w = whole.w.run(r);
      p.epilogue = r == 0 ? Epilogue::kStoreFloat : Epilogue::kAddFloat;
      p.y = sums.data();
      p.tile = tile_of(ProductKind::kShrink, p.m, p.w);
      kernels_.multiply(p);
    }
    T* const y = static_cast<T*>(whole.y);
    for (size_t i = 0; i < sums.size(); ++i) y[i] = from_float<T>(sums[i]);
  }

  // Ordered by segment, then slice, so that rows of x stay in cache from slice to slice.
  void cut_shrinks(size_t segments) {
    std::array<size_t, kMaxSlices> next{0, ends_[0], ends_[1]};
    for (size_t g = 0; g < segments; ++g)
      for (size_t s = 0; s < next.size(); ++s) {
        if (next[s] == ends_[s] || parts_[next[s]].segment != g) continue;
        const Part& part = parts_[next[s]];
        const int64_t tokens = part.tokens(), pieces = (tokens + kShrinkRows - 1) / kShrinkRows;
        for (int64_t i = 0; i < pieces; ++i)
          shrinks_.push_back({next[s], part.token_begin + tokens * i / pieces,
                              part.token_begin + tokens * (i + 1) / pieces});
        ++next[s];
      }
  }

  // The next shrink's panels of A, to prefetch during this one. False if it has fewer panels than
  // this one, or if they cannot be prefetched.
  bool next_panels(int64_t index, const T* (&next)[kMaxFetchedPanels]) const {
    if (index + 1 >= shrinks()) return false;
    const Panels<T> a = parts_[shrinks_[index + 1].part].a();
    const int64_t panels = panels_of(parts_[shrinks_[index].part].module->rank);
    if (a.cut() || panels_of(a.n) < panels || panels > kMaxFetchedPanels) return false;
    for (int64_t i = 0; i < panels; ++i) next[i] = a.panel(i);
    return true;
  }

  CpuTile tile_of(ProductKind kind, int64_t m, const Panels<T>& w) const {
    return tile_ ? *tile_ : choose_cpu_tile({kind, sizeof(T) == 4, isa(), m, w.n, w.k});
  }

  void wait_for_shrinks() const {
    while (shrunk_.load(std::memory_order_acquire) < shrinks()) {
      spin_pause();
    }
  }

  const T* x_;
  int64_t ldx_;
  std::optional<CpuTile> tile_;
  const KernelSet<T>& kernels_;
  std::vector<Part> parts_;                // ordered by slice
  std::array<size_t, kMaxSlices> ends_{};  // end of each slice's parts
  std::vector<Shrink> shrinks_;
  std::unique_ptr<T[]> low_;  // the rank-wide intermediates
  std::atomic<int64_t> shrunk_ = 0;
};

}  // namespace valora::kernels
