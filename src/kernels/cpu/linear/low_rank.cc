#include "kernels/cpu/linear/low_rank.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/linear/low_rank_pieces.h"
#include "kernels/cpu/linear/partition.h"
#include "kernels/cpu/work_queue.h"

namespace valora::kernels {
namespace {

constexpr int64_t kUnits = 64;              // units per launch: enough for load balance
constexpr int64_t kUnitProducts = 1 << 15;  // multiply-adds that amortise a unit's overhead
constexpr int64_t kGroup = 8;               // panels in the widest tile

// A work item: a range of outputs and of rows.
struct Unit {
  int64_t panel_begin, panel_end, row_begin, row_end;
};

std::vector<Unit> plan_units(int64_t m, int64_t n, int64_t per_output) {
  const int64_t panels = panels_of(n), groups = (panels + kGroup - 1) / kGroup,
                row_chunks = (m + kMaxRowsTogether - 1) / kMaxRowsTogether;
  const int64_t wanted = std::clamp<int64_t>(per_output * n / kUnitProducts, 1, kUnits);
  const int64_t chunks = std::clamp<int64_t>(wanted / row_chunks, 1, groups);
  std::vector<Unit> units;
  for (int64_t c = 0; c < chunks; ++c)
    for (int64_t r = 0; r < row_chunks; ++r)
      units.push_back({groups * c / chunks * kGroup,
                       std::min(panels, groups * (c + 1) / chunks * kGroup), m * r / row_chunks,
                       m * (r + 1) / row_chunks});
  return units;
}

}  // namespace

template <typename T>
void low_rank(const T* x, int64_t m, int64_t ldx, float* y, int64_t ldy, int module,
              std::span<const LoraSegment> segments, const ParallelFor& parallel,
              std::optional<CpuTile> tile) {
  if (m <= 0) return;
  LowRankPieces<T> pieces(x, ldx, segments, {module, -1, -1}, tile);
  const LoraModule* first = pieces.first_module();
  if (!first) return;
  const int64_t in = first->in, out = first->out, per_output = pieces.products_per_output(0);
  const std::vector<Unit> plan = plan_units(m, out, per_output);
  WorkQueue shrinks(pieces.shrinks()), units(static_cast<int64_t>(plan.size()));
  const auto run_unit = [&](const Unit& u) {
    pieces.fetch_expands(0, u.panel_begin, u.panel_end, u.row_begin, u.row_end);
    pieces.expand(0, u.panel_begin, u.panel_end, u.row_begin, u.row_end,
                  y + u.row_begin * ldy + u.panel_begin * kPanelOutputs, ldy);
  };
  const auto run_range = [&](int64_t begin, int64_t end) {
    shrinks.work(shrinks.count() * begin / units.count(), shrinks.count() * end / units.count(),
                 [&](int64_t i) { pieces.shrink(i); });
    units.work(begin, end, [&](int64_t i) { run_unit(plan[i]); });
  };
  if (per_output * (in + out) < kSerialProducts)
    run_range(0, units.count());
  else
    parallel(0, units.count(), 1, run_range);
}

#define VALORA_INSTANTIATE(T)                                              \
  template void low_rank(const T*, int64_t, int64_t, float*, int64_t, int, \
                         std::span<const LoraSegment>, const ParallelFor&, \
                         std::optional<CpuTile>);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)
#undef VALORA_INSTANTIATE

}  // namespace valora::kernels
