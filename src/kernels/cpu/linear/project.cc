#include "kernels/cpu/linear/project.h"

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/kernel_set.h"
#include "kernels/cpu/linear/byte_inputs.h"
#include "kernels/cpu/linear/integer_inputs.h"
#include "kernels/cpu/linear/low_rank_pieces.h"
#include "kernels/cpu/linear/partition.h"
#include "kernels/cpu/product/byte_product.h"
#include "kernels/cpu/product/integer_product.h"
#include "kernels/cpu/product/product.h"
#include "kernels/cpu/work_queue.h"
#include "kernels/tiles/choose.h"

namespace valora::kernels {
namespace {

// Bytes of weights that stay in L2 while all rows use them.
constexpr int64_t kChunkBytes = 256 << 10;
// Bytes of weights that stay in L3 likewise, if one group of panels exceeds kChunkBytes.
constexpr int64_t kLongChunkBytes = 8 << 20;
// The most groups of integer panels per work item with many rows: their sums stay in L2.
constexpr int64_t kIntegerGroups = 2;

// A range of outputs of one slice (for a gated product, of both) and of rows.
struct ProjectUnit {
  int64_t slice, panel_begin, panel_end, row_begin, row_end;
};

template <typename T>
class Projection;

// The work items of one launch.
template <typename T>
struct ProjectWork {
  struct Shrink {
    Projection<T>* of;
    int64_t index;
  };
  struct Unit {
    Projection<T>* of;
    ProjectUnit unit;
  };
  std::vector<Shrink> shrinks;
  std::vector<Unit> units;
  int64_t products = 0;  // multiply-adds
};

template <typename T>
std::array<int, kMaxSlices> modules_of(std::span<const Slice<T>> slices) {
  std::array<int, kMaxSlices> modules{-1, -1, -1};
  for (size_t s = 0; s < slices.size(); ++s) modules[s] = slices[s].module;
  return modules;
}

template <typename T>
class Projection {
 public:
  Projection(const T* x, const T* inputs, int64_t m, int64_t ldx, const float* largest,
             std::span<const Slice<T>> slices, std::span<const LoraSegment> segments,
             std::optional<Gate> gate)
      : x_(inputs),
        largest_(largest),
        m_(m),
        ldx_(ldx),
        slices_(slices),
        gate_(gate),
        kernels_(kernel_set<T>()),
        low_rank_(x, ldx, segments, modules_of(slices)) {
    for (size_t s = 0; s < slices.size(); ++s) {
      if (slices[s].integers) continue;
      tiles_[s] = choose_cpu_tile(
          {ProductKind::kDense, sizeof(T) == 4, isa(), m, slices[s].w.n, slices[s].w.k});
    }
  }

  // Prepares the inputs and appends the work items. This object must stay where it is until they
  // have run.
  void plan(const ParallelFor& parallel, ProjectWork<T>& work) {
    inputs_.prepare(kernels_, x_, m_, ldx_, slices_, parallel);
    byte_inputs_.prepare(x_, m_, ldx_, largest_, slices_, parallel);
    for (int64_t i = 0; i < low_rank_.shrinks(); ++i) work.shrinks.push_back({this, i});
    const size_t planned = gate_ ? 1 : slices_.size();
    for (size_t s = 0; s < planned; ++s) plan_units(static_cast<int64_t>(s), work);
    work.products += products();
  }

  void shrink(int64_t index) { low_rank_.shrink(index); }

  void run_unit(const ProjectUnit& unit) {
    if (gate_) return run_gated(unit);
    const Slice<T>& slice = slices_[unit.slice];
    const int64_t first = unit.panel_begin * kPanelOutputs,
                  last = std::min(slice.w.n, unit.panel_end * kPanelOutputs);
    const int64_t at = unit.row_begin * slice.ldy + first, width = last - first,
                  rows = unit.row_end - unit.row_begin;
    if (slice.y_float) return sum_into(unit.slice, unit, slice.y_float + at, slice.ldy);
    if (slice.integers || low_rank_.touched(unit.slice, unit.row_begin, unit.row_end)) {
      float* sums = scratch(rows * width);
      sum_into(unit.slice, unit, sums, width);
      return round_rows(sums, rows, width, slice.y + at, slice.ldy);
    }
    Product<T> p = dense(unit.slice, unit);
    p.y = slice.y + at;
    p.ldy = slice.ldy;
    p.first_output = first;
    kernels_.multiply(p);
  }

 private:
  int64_t products() const {
    int64_t sum = 0;
    for (const Slice<T>& slice : slices_) sum += m_ * slice.w.n * slice.w.k;
    return sum;
  }

  void plan_units(int64_t s, ProjectWork<T>& work) {
    const Slice<T>& slice = slices_[s];
    const int64_t group = slice.integers ? kIntegerPanels : tiles_[s].panels,
                  panels = panels_of(slice.w.n), groups = (panels + group - 1) / group;
    const int64_t row_chunks = (m_ + kMaxRowsTogether - 1) / kMaxRowsTogether;
    int64_t chunk = group;
    if (row_chunks > 1 && slice.integers) {
      chunk *= std::clamp<int64_t>(groups / 8, 1, kIntegerGroups);
    } else if (row_chunks > 1) {
      const int64_t bytes = group * panel_elements<T>(slice.w.k) * static_cast<int64_t>(sizeof(T));
      const int64_t most = bytes > kChunkBytes ? kLongChunkBytes : kChunkBytes;
      chunk *= std::clamp<int64_t>(most / std::max<int64_t>(1, bytes), 1,
                                   std::max<int64_t>(1, groups / 8));
    } else {
      chunk = piece_panels(panels, group);
    }
    for (int64_t panel = 0; panel < panels; panel += chunk)
      for (int64_t r = 0; r < row_chunks; ++r)
        work.units.push_back({this,
                              {s, panel, std::min(panels, panel + chunk), m_ * r / row_chunks,
                               m_ * (r + 1) / row_chunks}});
  }

  Product<T> dense(int64_t s, const ProjectUnit& unit) const {
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

  void run_gated(const ProjectUnit& unit) {
    const Slice<T>& slice = slices_[0];
    const int64_t first = unit.panel_begin * kPanelOutputs,
                  last = std::min(slice.w.n, unit.panel_end * kPanelOutputs);
    const int64_t width = last - first, rows = unit.row_end - unit.row_begin;
    float* gate = scratch(2 * rows * width);
    float* up = gate + rows * width;
    sum_into(0, unit, gate, width);
    sum_into(1, unit, up, width);
    gate_rows(*gate_, gate, up, rows, width, slice.y + unit.row_begin * slice.ldy + first,
              slice.ldy);
  }

  // The fp32 outputs of panels [begin, end) of one slice, without adapters. sums: those of the
  // unit.
  void multiply_into(int64_t s, const ProjectUnit& unit, int64_t begin, int64_t end, float* sums,
                     int64_t ld) {
    const int64_t first_output = unit.panel_begin * kPanelOutputs;
    if (slices_[s].integers) {
      const IntegerOutputs outputs{.w = *slices_[s].integers,
                                   .m = unit.row_end - unit.row_begin,
                                   .panel_begin = begin,
                                   .panel_end = end,
                                   .bias = slices_[s].bias,
                                   .y = sums,
                                   .ldy = ld,
                                   .first_output = first_output};
      if (outputs.w.input_block > 0)
        return byte_kernels().multiply({outputs, byte_inputs_.rows(s, unit.row_begin)});
      return multiply_integers(kernels_, inputs_.product(s, unit.row_begin, outputs));
    }
    Product<T> p = dense(s, unit);
    p.panel_begin = begin;
    p.panel_end = end;
    p.epilogue = Epilogue::kStoreFloat;
    p.y = sums;
    p.ldy = ld;
    p.first_output = first_output;
    kernels_.multiply(p);
  }

  // The unit's fp32 outputs of one slice, adapters included.
  void sum_into(int64_t s, const ProjectUnit& unit, float* sums, int64_t ld) {
    const int64_t group = low_rank_.fetched_together(s, unit.panel_end - unit.panel_begin,
                                                     unit.row_begin, unit.row_end);
    for (int64_t panel = unit.panel_begin; panel < unit.panel_end; panel += group) {
      const int64_t end = std::min(unit.panel_end, panel + group);
      low_rank_.fetch_expands(s, panel, end, unit.row_begin, unit.row_end);
      multiply_into(s, unit, panel, end, sums, ld);
    }
    low_rank_.expand(s, unit.panel_begin, unit.panel_end, unit.row_begin, unit.row_end, sums, ld);
  }

  static float* scratch(int64_t floats) {
    thread_local std::vector<float> memory;
    if (static_cast<int64_t>(memory.size()) < floats) memory.resize(floats);
    return memory.data();
  }

  const T* x_;  // what the weights multiply
  const float* largest_;
  int64_t m_, ldx_;
  std::span<const Slice<T>> slices_;
  std::optional<Gate> gate_;
  const KernelSet<T>& kernels_;
  CpuTile tiles_[kMaxSlices];
  IntegerInputs<T> inputs_;
  ByteInputs<T> byte_inputs_;
  LowRankPieces<T> low_rank_;
};

// Every thread takes all shrinks before any unit, because units wait for them.
template <typename T>
void run(const ProjectWork<T>& work, const ParallelFor& parallel) {
  WorkQueue shrinks(static_cast<int64_t>(work.shrinks.size())),
      units(static_cast<int64_t>(work.units.size()));
  const auto run_range = [&](int64_t begin, int64_t end) {
    const int64_t first = shrinks.count() * begin / units.count(),
                  last = shrinks.count() * end / units.count();
    shrinks.work(first, last,
                 [&](int64_t i) { work.shrinks[i].of->shrink(work.shrinks[i].index); });
    units.work(begin, end, [&](int64_t i) { work.units[i].of->run_unit(work.units[i].unit); });
  };
  if (work.products < kSerialProducts)
    run_range(0, units.count());
  else
    parallel(0, units.count(), 1, run_range);
}

}  // namespace

template <typename T>
void project(const T* x, int64_t m, int64_t ldx, std::span<const Slice<T>> slices,
             std::span<const LoraSegment> segments, std::optional<Gate> gate,
             const ParallelFor& parallel, const T* inputs, const float* largest) {
  if (m == 0 || slices.empty()) return;
  Projection<T> projection(x, inputs ? inputs : x, m, ldx, largest, slices, segments, gate);
  ProjectWork<T> work;
  projection.plan(parallel, work);
  run(work, parallel);
}

template <typename T>
void project_groups(std::span<const RowGroup<T>> groups, int64_t ldx, std::optional<Gate> gate,
                    const ParallelFor& parallel) {
  std::deque<Projection<T>> projections;  // which cannot be moved
  ProjectWork<T> work;
  for (const RowGroup<T>& group : groups) {
    if (group.m == 0 || group.slices.empty()) continue;
    projections.emplace_back(group.x, group.x, group.m, ldx, nullptr, group.slices, group.segments,
                             gate);
    projections.back().plan(parallel, work);
  }
  if (!work.units.empty()) run(work, parallel);
}

#define VALORA_INSTANTIATE(T)                                                                  \
  template void project(const T*, int64_t, int64_t, std::span<const Slice<T>>,                 \
                        std::span<const LoraSegment>, std::optional<Gate>, const ParallelFor&, \
                        const T*, const float*);                                               \
  template void project_groups(std::span<const RowGroup<T>>, int64_t, std::optional<Gate>,     \
                               const ParallelFor&);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)
#undef VALORA_INSTANTIATE

}  // namespace valora::kernels
