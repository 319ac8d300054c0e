#include "lab/trace/trace_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantile.h"

namespace valora::bench {
namespace {

Json json_of(const Timeline& timeline) {
  Json intervals = Json::array(), writes = Json::array();
  for (const TimelineInterval& interval : timeline.intervals()) {
    Json seconds = Json::object();
    for (size_t i = 0; i < kModes.size(); ++i) seconds[kModes[i]] = interval.seconds[i];
    intervals.push_back({{"steps", interval.steps},
                         {"tokens", interval.tokens},
                         {"mode_seconds", seconds},
                         {"switches", interval.switches},
                         {"merges", interval.merges},
                         {"weights_seconds", interval.weights_seconds}});
  }
  for (const WeightsWritten& write : timeline.writes())
    writes.push_back({{"at", write.at}, {"seconds", write.seconds}});
  return {{"interval_seconds", timeline.width()}, {"intervals", intervals}, {"writes", writes}};
}

Json json_of(const Percentiles& p) { return {{"mean", p.mean}, {"p50", p.p50}, {"p99", p.p99}}; }

double median_ratio(const std::vector<double>& of, const std::vector<double>& over) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(of.size(), over.size()); ++i)
    if (over[i] > 0) ratios.push_back(of[i] / over[i]);
  return ratios.empty() ? 1 : median(std::move(ratios));
}

}  // namespace

void compare_rounds(std::span<ComparedTrace> rows) {
  for (ComparedTrace& row : rows) {
    row.over_first = median_ratio(row.token_latencies, rows[0].token_latencies);
    row.over_first_at_costs_speed = median_ratio(row.at_costs_speed, rows[0].at_costs_speed);
  }
}

std::string text_of(const std::vector<ComparedTrace>& rows) {
  std::vector<TracePoint> points;
  for (const ComparedTrace& row : rows) points.push_back(row.point);
  const std::vector<std::string> names = names_of(points);
  size_t width = 8;
  for (const std::string& name : names) width = std::max(width, name.size());
  std::string text = fmt::format("{:<{}} {:<23}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}\n",
                                 "point", width, "policy", "ms/token", "TTFT ms", "p99", "TPOT ms",
                                 "p99", "tokens/s", "in time", "merges", "failed");
  const bool rounds = std::ranges::any_of(
      rows, [](const ComparedTrace& row) { return row.token_latencies.size() > 1; });
  if (rounds) {
    text.pop_back();
    text += fmt::format("{:>9}{:>11}\n", "/ first", "at costs'");
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const TraceSummary& s = rows[i].summary;
    text += fmt::format(
        "{:<{}} {:<23}{:>9.1f}{:>9.0f}{:>9.0f}{:>9.1f}{:>9.1f}{:>9.1f}{:>8.1f}%{:>8}{:>8}\n",
        names[i], width, rows[i].system, 1e3 * s.token_latency, 1e3 * s.ttft.mean, 1e3 * s.ttft.p99,
        1e3 * s.tpot.mean, 1e3 * s.tpot.p99, s.tokens_per_second, 100 * s.attainment, s.merges,
        s.failed);
    if (!rounds) continue;
    text.pop_back();
    text +=
        fmt::format("{:>9.3f}{:>11.3f}\n", rows[i].over_first, rows[i].over_first_at_costs_speed);
  }
  return text;
}

Json json_of(const ComparedTrace& row) {
  const TraceSummary& s = row.summary;
  Json out = json_of(row.point);
  out.update({{"policy", row.system},
              {"answers", s.answers},
              {"failed", s.failed},
              {"token_latency_seconds", s.token_latency},
              {"token_latency_rounds", row.token_latencies},
              {"token_latency_rounds_at_costs_speed", row.at_costs_speed},
              {"over_first", row.over_first},
              {"over_first_at_costs_speed", row.over_first_at_costs_speed},
              {"ttft_seconds", json_of(s.ttft)},
              {"tpot_seconds", json_of(s.tpot)},
              {"requests_per_second", s.requests_per_second},
              {"tokens_per_second", s.tokens_per_second},
              {"attainment", s.attainment},
              {"switches", s.switches},
              {"merges", s.merges},
              {"weights_seconds", s.weights_seconds},
              {"cost_correction", s.cost_correction}});
  if (row.timeline) out["timeline"] = json_of(*row.timeline);
  return out;
}

}  // namespace valora::bench
