#include "lab/trace/summary.h"

#include <algorithm>

#include "base/quantile.h"

namespace valora::bench {
namespace {

Percentiles percentiles_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  double sum = 0;
  for (const double value : values) sum += value;
  return {sum / static_cast<double>(values.size()), quantile(values, 0.5), quantile(values, 0.99)};
}

void add(Percentiles& sum, const Percentiles& one, double weight) {
  sum.mean += weight * one.mean;
  sum.p50 += weight * one.p50;
  sum.p99 += weight * one.p99;
}

}  // namespace

TraceSummary summary_of(std::span<const ServedAnswer> answers, size_t failed, double ttft_target) {
  TraceSummary summary{.answers = answers.size(), .failed = failed};
  std::vector<double> ttft, tpot;
  double last = 0, time = 0, tokens = 0, met = 0;
  for (const ServedAnswer& answer : answers) {
    last = std::max(last, answer.end);
    time += answer.end - answer.arrival;
    tokens += answer.tokens;
    ttft.push_back(answer.first_token - answer.arrival);
    met += ttft.back() <= ttft_target ? 1 : 0;
    if (answer.tokens > 1) tpot.push_back((answer.end - answer.first_token) / (answer.tokens - 1));
  }
  if (last > 0) {
    summary.requests_per_second = static_cast<double>(answers.size()) / last;
    summary.tokens_per_second = tokens / last;
  }
  if (tokens > 0) summary.token_latency = time / tokens;
  summary.ttft = percentiles_of(std::move(ttft));
  summary.tpot = percentiles_of(std::move(tpot));
  if (const size_t all = answers.size() + failed; all > 0)
    summary.attainment = met / static_cast<double>(all);
  return summary;
}

TraceSummary summary_of(std::span<const sim::Arrival> arrivals, const LiveReport& report,
                        double ttft_target) {
  std::vector<ServedAnswer> answers;
  for (size_t i = 0; i < arrivals.size(); ++i) {
    const LiveAnswer& answer = report.answers[i];
    if (answer.error) continue;
    const double arrival = answer.arrival;
    answers.push_back({arrival, arrival + answer.timings.ttft_seconds,
                       arrival + answer.timings.e2e_seconds,
                       static_cast<int>(answer.tokens.size())});
  }
  const size_t failed = arrivals.size() - answers.size();
  TraceSummary summary = summary_of(answers, failed, ttft_target);
  summary.switches = report.stats.mode_switches;
  summary.merges = report.stats.merges;
  summary.weights_seconds = report.stats.merge_seconds;
  summary.cost_correction = report.cost_correction;
  return summary;
}

void append(std::span<const sim::Arrival> arrivals, const sim::SimulationReport& report,
            std::vector<ServedAnswer>& answers, size_t& failed) {
  for (size_t i = 0; i < arrivals.size(); ++i) {
    const sim::Answer& answer = report.answers[i];
    if (answer.refused)
      ++failed;
    else
      answers.push_back({seconds(answer.arrival), seconds(answer.first_token), seconds(answer.end),
                         arrivals[i].answer_tokens});
  }
}

TraceSummary mean_of(std::span<const TraceSummary> rounds) {
  TraceSummary mean{.cost_correction = 0};
  const double weight = 1 / static_cast<double>(rounds.size());
  for (const TraceSummary& round : rounds) {
    mean.answers += round.answers;
    mean.failed += round.failed;
    mean.requests_per_second += weight * round.requests_per_second;
    mean.tokens_per_second += weight * round.tokens_per_second;
    mean.token_latency += weight * round.token_latency;
    add(mean.ttft, round.ttft, weight);
    add(mean.tpot, round.tpot, weight);
    mean.attainment += weight * round.attainment;
    mean.switches += round.switches;
    mean.merges += round.merges;
    mean.weights_seconds += weight * round.weights_seconds;
    mean.cost_correction += weight * round.cost_correction;
  }
  mean.answers /= rounds.size();
  mean.failed /= rounds.size();
  mean.switches /= rounds.size();
  mean.merges /= rounds.size();
  return mean;
}

}  // namespace valora::bench
