// The fusion page's own CSS rules, in addition to report/style.h.
#include "generator/data/fusion_page.h"
#include "report/style.h"

namespace valora::generator {
namespace {

constexpr const char* kRows =
    R"css(tr.undone td { color: var(--quiet); } tr.undone { background: var(--band); }
s { text-decoration-thickness: 2px; text-decoration-color: var(--bad); }
.task { white-space: nowrap; margin-right: 10px; display: inline-block; }
)css";

constexpr const char* kMarks =
    R"css(.floor { stroke: var(--c, var(--quiet)); stroke-width: 3; opacity: .55; }
.kept { stroke: var(--c, var(--quiet)); stroke-width: 2.2; } .rest { stroke: var(--c, var(--quiet)); opacity: .45; }
.tried { stroke: var(--c, var(--quiet)); stroke-width: 1.6; stroke-dasharray: 4 4; }
.point { fill: var(--c, var(--quiet)); stroke: var(--raised); stroke-width: 1.2; }
.hollow { fill: var(--raised); stroke: var(--c, var(--quiet)); stroke-width: 1.8; }
.failed { fill: none; stroke: var(--bad); stroke-width: 1.6; }
)css";

}  // namespace

std::string fusion_style() {
  return std::string(report::kPageStyle) + kRows + report::kChartStyle + kMarks;
}

}  // namespace valora::generator
