#include "lab/sim/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text/strings.h"
#include "lab/sim/random.h"

namespace valora::sim {
namespace {

constexpr int kMaxAdapters = 1'000'000;
constexpr double kMaxSeconds = 1e9;  // a Duration can hold 9e9

Error out_of_range(const char* field, const std::string& range) {
  return invalid(fmt::format("{} must be {}", field, range), field);
}

// The conditions are written so that NaN fails.
Status check(const WorkloadConfig& c) {
  const bool traced = c.process == ArrivalProcess::kTrace;
  if (!(c.rate > 0 || (traced && c.rate == 0)) || !std::isfinite(c.rate))
    return out_of_range("rate", traced ? "0 or above" : "above 0");
  if (!(c.seconds > 0 && c.seconds <= kMaxSeconds))
    return out_of_range("seconds", "above 0 and at most 1e9");
  if (!(c.cv >= 0.01 && c.cv <= 100)) return out_of_range("cv", "from 0.01 to 100");
  if (!(c.alpha >= 0) || !std::isfinite(c.alpha)) return out_of_range("alpha", "0 or above");
  const auto is_share = [](double value) { return value >= 0 && value <= 1; };
  if (!is_share(c.skewness)) return out_of_range("skewness", "from 0 to 1");
  if (!std::ranges::all_of(c.phases, is_share)) return out_of_range("phases", "from 0 to 1");
  if (c.adapters < 0 || c.adapters > kMaxAdapters)
    return out_of_range("adapters", fmt::format("from 0 to {}", kMaxAdapters));
  if (c.max_tokens < 2) return out_of_range("max_tokens", "at least 2");
  if (!traced && (c.prompt_min < 1 || c.prompt_min > c.prompt_max))
    return out_of_range("prompt_min", "from 1 to prompt_max");
  if (!traced && (c.answer_min < 1 || c.answer_min > c.answer_max))
    return out_of_range("answer_min", "from 1 to answer_max");
  return {};
}

Error too_many() {
  return out_of_range("rate", fmt::format("smaller: at most {} requests are made", kMaxRequests));
}

Result<std::vector<TraceRow>> synthetic_rows(const WorkloadConfig& config) {
  if (config.rate * config.seconds > kMaxRequests) return too_many();
  Random times(config.seed, Random::kTimes), lengths(config.seed, Random::kLengths);
  const double shape = 1 / (config.cv * config.cv);
  const bool gamma = config.process == ArrivalProcess::kGamma;
  std::vector<TraceRow> rows;
  double at = 0;
  while (true) {
    at += (gamma ? times.gamma(shape) / shape : times.exponential()) / config.rate;
    if (at >= config.seconds) return rows;
    const int prompt = lengths.between(config.prompt_min, config.prompt_max);
    const int answer = lengths.between(config.answer_min, config.answer_max);
    rows.push_back({from_seconds(at), prompt, answer});
  }
}

Result<std::vector<TraceRow>> traced_rows(const WorkloadConfig& config,
                                          std::span<const TraceRow> trace) {
  if (trace.empty() || trace.back().at <= trace.front().at)
    return invalid("trace must have two rows of different times", "trace");
  const size_t size = trace.size();
  const double length = seconds(trace.back().at - trace.front().at);
  const double period = length + length / static_cast<double>(size - 1);
  const auto recorded = [&](size_t i) {
    const size_t rounds = i / size;
    return period * static_cast<double>(rounds) + seconds(trace[i % size].at - trace.front().at);
  };
  const double expected =
      config.seconds * (config.rate > 0 ? config.rate : static_cast<double>(size) / period);
  if (expected > kMaxRequests) return too_many();
  size_t count = 0;
  double scale = 1;
  if (config.rate > 0) {
    count = static_cast<size_t>(std::llround(expected));
    // The first row beyond `count` would arrive at the very end. 0: all arrive at the start.
    scale = recorded(count) > 0 ? config.seconds / recorded(count) : 0;
  } else {
    while (recorded(count) < config.seconds) ++count;
  }
  std::vector<TraceRow> rows;
  for (size_t i = 0; i < count; ++i) {
    rows.push_back(trace[i % size]);
    rows.back().at = from_seconds(recorded(i) * scale);
  }
  return rows;
}

class AdapterPicker {
 public:
  explicit AdapterPicker(const WorkloadConfig& config)
      : config_(config), random_(config.seed, Random::kAdapters) {
    if (config.phases.empty()) cumulative_.push_back(cumulated(config.skewness));
    for (const double skewness : config.phases) cumulative_.push_back(cumulated(skewness));
  }

  scheduler::AdapterId pick(Duration at) {
    if (config_.adapters == 0) return scheduler::kBaseModel;
    const double part = seconds(at) / config_.seconds * static_cast<double>(cumulative_.size());
    const size_t phase = std::min(static_cast<size_t>(part), cumulative_.size() - 1);
    const std::vector<double>& sums = cumulative_[phase];
    const double place = random_.uniform() * sums.back();
    const auto index = std::ranges::upper_bound(sums, place) - sums.begin();
    // A single adapter may have weight 0, and rounding may reach the end.
    const auto drawn = static_cast<int>(std::min<ptrdiff_t>(index, std::ssize(sums) - 1));
    return (drawn + static_cast<int>(phase)) % config_.adapters;
  }

 private:
  std::vector<double> cumulated(double skewness) const {
    std::vector<double> sums;
    double sum = 0;
    for (int i = 0; i < config_.adapters; ++i) sums.push_back(sum += weight(skewness, i));
    return sums;
  }

  double weight(double skewness, int adapter) const {
    switch (config_.shares) {
      case AdapterShares::kPowerLaw: return std::pow(adapter + 1.0, -config_.alpha);
      case AdapterShares::kSkewed:
        return adapter == 0 ? skewness : (1 - skewness) / (config_.adapters - 1);
      case AdapterShares::kUniform: break;
    }
    return 1;
  }

  const WorkloadConfig& config_;
  std::vector<std::vector<double>> cumulative_;  // sums of weights, by phase
  Random random_;
};

// In the order of the enumerators.
constexpr std::array kProcessNames{"poisson", "gamma", "trace"};
constexpr std::array kSharesNames{"uniform", "power-law", "skewed"};

template <typename Enum>
Result<Enum> parse_name(const char* what, const std::string& name,
                        std::span<const char* const> known) {
  const auto found = std::ranges::find(known, name);
  if (found != known.end()) return static_cast<Enum>(found - known.begin());
  return invalid(
      fmt::format("unknown {} '{}'; known: {}", what, shortened(name, 80), fmt::join(known, ", ")));
}

}  // namespace

Result<std::vector<Arrival>> make_workload(const WorkloadConfig& config,
                                           std::span<const TraceRow> trace) {
  VALORA_CHECK(check(config));
  const bool traced = config.process == ArrivalProcess::kTrace;
  VALORA_TRY(rows, traced ? traced_rows(config, trace) : synthetic_rows(config));
  AdapterPicker adapters(config);
  Random tokens(config.seed, Random::kTokens);
  std::vector<Arrival> arrivals;
  for (const TraceRow& row : rows) {
    const int most = config.max_tokens;
    const int prompt = std::min(row.prompt_tokens, std::max(most / 2, most - row.answer_tokens));
    arrivals.push_back({.at = row.at,
                        .prompt = random_prompt(tokens, prompt),
                        .answer_tokens = std::min(row.answer_tokens, most - prompt),
                        .adapter = adapters.pick(row.at)});
  }
  return arrivals;
}

const char* name_of(ArrivalProcess process) { return kProcessNames[static_cast<size_t>(process)]; }
const char* name_of(AdapterShares shares) { return kSharesNames[static_cast<size_t>(shares)]; }

Result<ArrivalProcess> parse_arrival_process(const std::string& name) {
  return parse_name<ArrivalProcess>("arrival process", name, kProcessNames);
}

Result<AdapterShares> parse_adapter_shares(const std::string& name) {
  return parse_name<AdapterShares>("adapter shares", name, kSharesNames);
}

}  // namespace valora::sim
