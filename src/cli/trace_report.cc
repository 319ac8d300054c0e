#include "cli/trace_report.h"

#include <fmt/format.h>

namespace valora::cli {

using bench::TraceSummary;

std::string text_of(const std::vector<ComparedTrace>& rows) {
  std::string text = fmt::format("{:>8} {:<14}{:>10}{:>10}{:>10}{:>10}{:>10}{:>9}{:>9}{:>8}{:>8}\n",
                                 "skewness", "policy", "ms/token", "TTFT ms", "p99", "TPOT ms",
                                 "p99", "tokens/s", "in time", "merges", "failed");
  for (const ComparedTrace& row : rows) {
    const TraceSummary& s = row.summary;
    text += fmt::format(
        "{:>8} {:<14}{:>10.1f}{:>10.0f}{:>10.0f}{:>10.1f}{:>10.1f}{:>9.1f}{:>8.1f}%{:>8}{:>8}\n",
        row.skewness, row.system, 1e3 * s.token_latency, 1e3 * s.ttft.mean, 1e3 * s.ttft.p99,
        1e3 * s.tpot.mean, 1e3 * s.tpot.p99, s.tokens_per_second, 100 * s.attainment, s.merges,
        s.failed);
  }
  return text;
}

Json json_of(const ComparedTrace& row) {
  const TraceSummary& s = row.summary;
  const auto percentiles = [](const bench::Percentiles& p) {
    return Json{{"mean", p.mean}, {"p50", p.p50}, {"p99", p.p99}};
  };
  return {{"skewness", row.skewness},
          {"policy", row.system},
          {"answers", s.answers},
          {"failed", s.failed},
          {"token_latency_seconds", s.token_latency},
          {"ttft_seconds", percentiles(s.ttft)},
          {"tpot_seconds", percentiles(s.tpot)},
          {"requests_per_second", s.requests_per_second},
          {"tokens_per_second", s.tokens_per_second},
          {"attainment", s.attainment},
          {"switches", s.switches},
          {"merges", s.merges}};
}

}  // namespace valora::cli
