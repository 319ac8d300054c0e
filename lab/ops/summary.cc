#include "lab/ops/summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace valora::bench {
namespace {

// Minimum number of shapes, differing only in rank and popularity, for a meaningful spread.
constexpr size_t kFewShapes = 3;

using Values = std::vector<double>;

Json mean_or_null(const Values& values) {
  return values.empty() ? Json() : Json(geometric_mean(values));
}
Json least_or_null(const Values& values) {
  return values.empty() ? Json() : Json(*std::min_element(values.begin(), values.end()));
}
Json most_or_null(const Values& values) {
  return values.empty() ? Json() : Json(*std::max_element(values.begin(), values.end()));
}

template <typename Wanted>
void add_ratios(Json& summary, const std::string& name, const std::string& rival,
                std::span<const Measurement> all, const Wanted& wanted) {
  Values ratios;
  for (const Measurement& m : all)
    if (wanted(m) && m.find(rival)) ratios.push_back(m.ratio(rival));
  summary[name + "_vs_" + rival + "_geomean"] = mean_or_null(ratios);
  summary[name + "_vs_" + rival + "_worst"] = least_or_null(ratios);
}

void add_linear_targets(Json& summary, std::span<const Measurement> all) {
  const auto bf16 = [](const Measurement& m) {
    return m.operation == "linear" && m.shape["dtype"] == "bf16";
  };
  add_ratios(summary, "linear_bf16", "aten", all, bf16);
  add_ratios(summary, "linear_bf16_8_to_32_tokens", "aten", all, [&](const Measurement& m) {
    return bf16(m) && m.shape["tokens"] >= 8 && m.shape["tokens"] <= 32;
  });
}

void add_limits(Json& summary, const std::string& operation, std::span<const Measurement> all) {
  Values shares;
  for (const Measurement& m : all)
    if (m.operation == operation && m.bound_seconds > 0) shares.push_back(m.share_of_limit());
  if (shares.empty()) return;
  summary[operation + "_share_of_limit_geomean"] = geometric_mean(shares);
  summary[operation + "_share_of_limit_worst"] = *std::min_element(shares.begin(), shares.end());
}

void add_merge(Json& summary, std::span<const Measurement> all) {
  Values slowness;
  for (const Measurement& m : all)
    if (m.operation == "merge")
      slowness.push_back(m.ours().seconds.p50 * m.bandwidth / m.work.bytes);
  summary["merge_vs_bandwidth_bound"] = mean_or_null(slowness);
  summary["merge_vs_bandwidth_bound_worst"] = most_or_null(slowness);
}

// Time of our modes relative to the base model; lower is better.
void add_modes(Json& summary, std::span<const Measurement> all) {
  for (const std::string mode : {"merged", "unmerged"}) {
    Values slowness;
    for (const Measurement& m : all)
      if (m.operation == "modes" && m.find(mode)) slowness.push_back(m.ratio(mode));
    if (slowness.empty()) continue;
    summary["modes_" + mode + "_over_base"] = geometric_mean(slowness);
    summary["modes_" + mode + "_over_base_worst"] = most_or_null(slowness);
  }
}

// Time with paged adapters relative to adapters in one allocation; lower is better.
void add_paged_adapters(Json& summary, std::span<const Measurement> all) {
  Values slowness;
  for (const Measurement& m : all)
    if (m.operation == "paged_adapters" && m.find("paged")) slowness.push_back(m.ratio("paged"));
  if (slowness.empty()) return;
  summary["paged_adapters_over_together"] = geometric_mean(slowness);
  summary["paged_adapters_over_together_worst"] = most_or_null(slowness);
}

void add_spread(Json& summary, std::span<const Measurement> all) {
  std::map<std::string, std::map<std::string, Values>>
      medians;  // per contender, by the other shape fields
  std::map<std::string, Values> jitter;
  for (const Measurement& m : all) {
    if (m.operation != "atmm") continue;
    const std::string group =
        Json{m.shape["phase"], m.shape["tokens"], m.shape["hidden"], m.shape["cold"]}.dump();
    for (const Timing& t : m.timings) {
      medians[t.name][group].push_back(t.seconds.p50);
      jitter[t.name].push_back(t.seconds.p90 / t.seconds.p50);
    }
  }
  for (const char* figure : {"atmm_spread", "atmm_fluctuation", "atmm_jitter"})
    summary[figure] = Json::object();
  for (const auto& [name, groups] : medians) {
    Values spreads, fluctuations;
    for (const auto& [group, values] : groups) {
      const Values& ours = medians[kOurs][group];
      if (values.size() < kFewShapes || ours.size() < kFewShapes) continue;
      const Distribution d = distribution_of(values), own = distribution_of(ours);
      spreads.push_back(d.p90 / d.p50);
      if (own.p90 > own.p50 && d.p90 > d.p50)
        fluctuations.push_back((d.p90 - d.p50) / (own.p90 - own.p50));
    }
    summary["atmm_spread"][name] = mean_or_null(spreads);
    summary["atmm_fluctuation"][name] = mean_or_null(fluctuations);
    summary["atmm_jitter"][name] = geometric_mean(jitter[name]);
  }
}

}  // namespace

double geometric_mean(std::span<const double> values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

Json summarize_ops(std::span<const Measurement> measurements) {
  std::set<std::pair<std::string, std::string>> pairs{
      {"linear", "aten"}, {"atmm", "single_tile"}, {"atmm", "aten"}};
  std::set<std::string> operations;
  for (const Measurement& m : measurements) {
    operations.insert(m.operation);
    if (m.operation == "modes" || m.operation == "paged_adapters") continue;  // no rivals
    for (size_t i = 1; i < m.timings.size(); ++i) pairs.emplace(m.operation, m.timings[i].name);
  }
  Json summary = Json::object();
  for (const auto& [operation, rival] : pairs)
    add_ratios(summary, operation, rival, measurements,
               [&](const Measurement& m) { return m.operation == operation; });
  for (const std::string& operation : operations) add_limits(summary, operation, measurements);
  add_linear_targets(summary, measurements);
  add_merge(summary, measurements);
  add_modes(summary, measurements);
  add_paged_adapters(summary, measurements);
  add_spread(summary, measurements);
  return summary;
}

}  // namespace valora::bench
