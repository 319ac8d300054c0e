#include "lab/ops/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "lab/ops/summary.h"

namespace valora::bench {
namespace {

std::string machine_text(const Machine& m) {
  return fmt::format(
      "{} thread{}, {}; at the start reading memory {:.1f} GB/s, products {:.0f} GFLOP/s in bf16, "
      "{:.0f} "
      "in fp32, rounded inputs {:.0f} GOP/s in int8, {:.0f} in int4\n",
      m.threads, m.threads == 1 ? "" : "s", m.isa, m.bandwidth / 1e9, m.bf16_arithmetic / 1e9,
      m.float_arithmetic / 1e9, m.int8_arithmetic / 1e9, m.int4_arithmetic / 1e9);
}

std::string time_text(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.1f} us", seconds * 1e6)
                        : fmt::format("{:.2f} ms", seconds * 1e3);
}

std::string limit_text(const Measurement& m) {
  if (m.bound_seconds <= 0) return "-";
  return fmt::format("{:.0f} % {}", 100 * m.share_of_limit(), m.bandwidth_bound ? "mem" : "arith");
}

std::vector<std::string> rivals_of(const std::vector<const Measurement*>& rows) {
  std::vector<std::string> names;
  for (const Measurement* m : rows)
    for (size_t i = 1; i < m->timings.size(); ++i)
      if (std::find(names.begin(), names.end(), m->timings[i].name) == names.end())
        names.push_back(m->timings[i].name);
  return names;
}

std::string table_text(const std::string& operation, const std::vector<const Measurement*>& rows) {
  size_t width = operation.size();
  for (const Measurement* m : rows) width = std::max(width, m->label.size());
  const std::vector<std::string> rivals = rivals_of(rows);
  std::string text = fmt::format("\n{:<{}} {:>10} {:>7} {:>11}", operation, width, "time p50",
                                 "p90/p50", "of limit");
  for (const std::string& rival : rivals)
    text += fmt::format(" {:>{}}", rival, std::max<size_t>(8, rival.size()));
  text += "\n";
  for (const Measurement* m : rows) {
    const Distribution& ours = m->ours().seconds;
    text += fmt::format("{:<{}} {:>10} {:>7.2f} {:>11}", m->label, width, time_text(ours.p50),
                        ours.p90 / ours.p50, limit_text(*m));
    for (const std::string& rival : rivals)
      text += fmt::format(" {:>{}}", m->find(rival) ? fmt::format("{:.2f}x", m->ratio(rival)) : "-",
                          std::max<size_t>(8, rival.size()));
    text += "\n";
  }
  return text;
}

std::string summary_text(const Json& summary) {
  std::string text = "\nsummary (rivals: their time / ours; more is better for us)\n";
  for (const auto& [name, value] : summary.items()) {
    if (!value.is_object()) {
      if (!value.is_null()) text += fmt::format("  {:<46} {:.3f}\n", name, value.get<double>());
      continue;
    }
    for (const auto& [key, part] : value.items())
      if (!part.is_null())
        text += fmt::format("  {:<46} {:.3f}\n", name + " " + key, part.get<double>());
  }
  return text;
}

Json machine_json(const Machine& m) {
  return {{"isa", m.isa},
          {"threads", m.threads},
          {"last_level_cache_bytes", m.last_level_cache},
          {"bandwidth_bytes_per_second", m.bandwidth},
          {"bf16_operations_per_second", m.bf16_arithmetic},
          {"fp32_operations_per_second", m.float_arithmetic},
          {"int8_operations_per_second", m.int8_arithmetic},
          {"int4_operations_per_second", m.int4_arithmetic}};
}

Json measurement_json(const Measurement& m) {
  Json json{{"operation", m.operation},
            {"label", m.label},
            {"shape", m.shape},
            {"bytes", m.work.bytes},
            {"operations", m.work.operations},
            {"bandwidth_bytes_per_second", m.bandwidth > 0 ? Json(m.bandwidth) : Json()},
            {"operations_per_second", m.arithmetic > 0 ? Json(m.arithmetic) : Json()},
            {"bound_seconds", m.bound_seconds > 0 ? Json(m.bound_seconds) : Json()},
            {"bound_by",
             m.bound_seconds <= 0 ? Json() : Json(m.bandwidth_bound ? "bandwidth" : "arithmetic")},
            {"share_of_limit", m.bound_seconds > 0 ? Json(m.share_of_limit()) : Json()},
            {"seconds", Json::object()},
            {"ratios", Json::object()}};
  for (const Timing& t : m.timings) {
    const Distribution& d = t.seconds;
    json["seconds"][t.name] = {{"rounds", d.count},
                               {"mean", d.mean},
                               {"p50", d.p50},
                               {"p90", d.p90},
                               {"spread", d.p90 / d.p50}};
    if (t.name != m.ours().name) json["ratios"][t.name] = m.ratio(t.name);
  }
  return json;
}

}  // namespace

std::string ops_report_text(const OpsRun& run) {
  std::string text = machine_text(run.machine);
  for (const auto& [name, note] : run.notes.items())
    text += fmt::format("{}: {}\n", name, note.dump());
  std::vector<std::string> operations;
  for (const Measurement& m : run.measurements)
    if (std::find(operations.begin(), operations.end(), m.operation) == operations.end())
      operations.push_back(m.operation);
  for (const std::string& operation : operations) {
    std::vector<const Measurement*> rows;
    for (const Measurement& m : run.measurements)
      if (m.operation == operation) rows.push_back(&m);
    text += table_text(operation, rows);
  }
  return text + summary_text(summarize_ops(run.measurements));
}

Json ops_report_json(const OpsRun& run) {
  Json json{
      {"machine", machine_json(run.machine)},
      {"notes", run.notes},
      {"settings", {{"quick", run.settings.quick}, {"filter", run.settings.filter}}},
      {"measurements", Json::array()},
      {"summary", summarize_ops(run.measurements)}};  // keys are sorted, so it is the last one
  for (const Measurement& m : run.measurements) json["measurements"].push_back(measurement_json(m));
  return json;
}

}  // namespace valora::bench
