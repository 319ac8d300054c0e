#include "lab/sim/workload.h"
#include "lab/sim/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace valora::sim {
namespace {

using std::chrono::seconds;

// Throws if the configuration is refused.
std::vector<Arrival> made(const WorkloadConfig& config, std::span<const TraceRow> trace = {}) {
  return make_workload(config, trace).value();
}

std::vector<double> gaps_of(const std::vector<Arrival>& arrivals) {
  std::vector<double> gaps;
  for (size_t i = 1; i < arrivals.size(); ++i)
    gaps.push_back(valora::seconds(arrivals[i].at - arrivals[i - 1].at));
  return gaps;
}

// The share of requests for each adapter.
std::map<int, double> shares_of(const std::vector<Arrival>& arrivals) {
  std::map<int, double> shares;
  for (const Arrival& arrival : arrivals)
    shares[arrival.adapter] += 1 / static_cast<double>(arrivals.size());
  return shares;
}

// 20,000 short requests.
WorkloadConfig many(ArrivalProcess process = ArrivalProcess::kPoisson, double cv = 1) {
  WorkloadConfig config{.process = process, .rate = 20, .cv = cv, .seconds = 1000};
  config.prompt_max = config.answer_max = 16;
  return config;
}

WorkloadConfig traced(double rate, double seconds) {
  return {.process = ArrivalProcess::kTrace, .rate = rate, .seconds = seconds};
}

// A burst of three, and one row 9 s later. With the mean gap of 3 s, a repetition takes 12 s.
const TraceRow kBurst[] = {
    {seconds(0), 10, 1}, {seconds(0), 20, 2}, {seconds(0), 30, 3}, {seconds(9), 40, 4}};

// Rounded to the microsecond.
std::vector<double> traced_times(double rate, double seconds) {
  std::vector<double> times;
  for (const Arrival& arrival : made(traced(rate, seconds), kBurst))
    times.push_back(std::round(valora::seconds(arrival.at) * 1e6) / 1e6);
  return times;
}

TEST(Workload, ArrivalsAreOrderedWithRateAndVariation) {
  const auto expect = [](ArrivalProcess process, double cv) {
    const auto arrivals = made(many(process, cv));
    EXPECT_TRUE(std::ranges::is_sorted(arrivals, {}, &Arrival::at));
    EXPECT_LE(arrivals.back().at, seconds(1000));
    EXPECT_NEAR(static_cast<double>(arrivals.size()), 20000, 4 * cv * std::sqrt(20000));
    double sum = 0, squares = 0;
    for (const double gap : gaps_of(arrivals)) sum += gap, squares += gap * gap;
    const double ratio = squares * static_cast<double>(arrivals.size() - 1) / (sum * sum);
    EXPECT_NEAR(std::sqrt(ratio - 1), cv, 0.05 * cv);
  };
  expect(ArrivalProcess::kPoisson, 1);
  for (const double cv : {0.2, 0.9, 1.0, 1.5, 3.0}) expect(ArrivalProcess::kGamma, cv);
}

// The coefficient of variation alone would not identify these distributions.
TEST(Workload, GapsFollowDistributionTails) {
  const auto above_two_means = [](ArrivalProcess process, double cv) {
    const auto gaps = gaps_of(made(many(process, cv)));
    const auto count = std::ranges::count_if(gaps, [](double gap) { return gap > 2.0 / 20; });
    return static_cast<double>(count) / static_cast<double>(gaps.size());
  };
  const double tail = std::exp(-2.0), root = std::sqrt(0.5);
  EXPECT_NEAR(above_two_means(ArrivalProcess::kPoisson, 1), tail, 0.01);
  EXPECT_NEAR(above_two_means(ArrivalProcess::kGamma, 1), tail, 0.01);
  // Shape 2: (1 + 2x) e^-2x. Shape 1/2: a squared normal variable.
  EXPECT_NEAR(above_two_means(ArrivalProcess::kGamma, root), 5 * std::exp(-4.0), 0.01);
  EXPECT_NEAR(above_two_means(ArrivalProcess::kGamma, 1 / root), std::erfc(1), 0.01);
}

TEST(Workload, AdaptersHaveTheirShares) {
  const auto expect = [](AdapterShares kind, double skewness,
                         const std::map<int, double>& expected) {
    WorkloadConfig config = many();
    config.shares = kind;
    config.alpha = 2;
    config.skewness = skewness;
    config.adapters = expected.contains(0) ? static_cast<int>(expected.size()) : 0;
    auto shares = shares_of(made(config));
    for (const auto& [adapter, share] : expected) EXPECT_NEAR(shares[adapter], share, share / 15);
    EXPECT_EQ(shares.size(), expected.size());
  };
  expect(AdapterShares::kUniform, 0.5, {{0, 0.25}, {1, 0.25}, {2, 0.25}, {3, 0.25}});
  expect(AdapterShares::kPowerLaw, 0.5, {{0, 36.0 / 49}, {1, 9.0 / 49}, {2, 4.0 / 49}});
  expect(AdapterShares::kSkewed, 0.6, {{0, 0.6}, {1, 0.1}, {2, 0.1}, {3, 0.1}, {4, 0.1}});
  expect(AdapterShares::kSkewed, 0, {{0, 0}, {1, 0.5}, {2, 0.5}});
  expect(AdapterShares::kSkewed, 1, {{0, 1}, {1, 0}, {2, 0}});
  expect(AdapterShares::kSkewed, 0, {{0, 1}});
  expect(AdapterShares::kUniform, 0.5, {{scheduler::kBaseModel, 1}});
}

TEST(Workload, TheLoadShiftsToAnotherAdapter) {
  const auto arrivals = make_workload({.rate = 50,
                                       .shares = AdapterShares::kSkewed,
                                       .phases = {0.9, 0.2, 0.6},
                                       .adapters = 5,
                                       .seconds = 60});
  ASSERT_TRUE(arrivals.ok());
  std::map<std::pair<int, int>, double> counts;
  std::map<int, double> all;
  for (const Arrival& arrival : *arrivals) {
    const int phase = static_cast<int>(arrival.at / seconds(20));
    ++counts[{phase, arrival.adapter}];
    ++all[phase];
  }
  EXPECT_NEAR((counts[{0, 0}] / all[0]), 0.9, 0.05);
  EXPECT_NEAR((counts[{1, 1}] / all[1]), 0.2, 0.05);
  EXPECT_NEAR((counts[{2, 2}] / all[2]), 0.6, 0.05);
  EXPECT_NEAR((counts[{2, 1}] / all[2]), 0.1, 0.05);
}

TEST(Workload, LengthsFillTheirRanges) {
  WorkloadConfig config = many();
  config.prompt_min = 13;
  config.answer_min = 15;
  std::map<std::pair<size_t, int>, double> lengths;
  for (const Arrival& one : made(config)) ++lengths[{one.prompt.size(), one.answer_tokens}];
  EXPECT_EQ(lengths.size(), 4u * 2u);
  EXPECT_EQ(lengths.begin()->first, std::pair(size_t{13}, 15));
  EXPECT_EQ(lengths.rbegin()->first, std::pair(size_t{16}, 16));
  for (const auto& [length, count] : lengths) EXPECT_NEAR(count, 20000 / 8.0, 250);
}

TEST(Workload, SequencesAreTruncatedToMaxTokens) {
  const auto cut = [](int prompt, int answer) {
    WorkloadConfig config = traced(1, 1);
    config.max_tokens = 101;
    const TraceRow rows[] = {{seconds(0), prompt, answer}, {seconds(1), 1, 1}};
    const Arrival arrival = made(config, rows).at(0);
    return std::pair(static_cast<int>(arrival.prompt.size()), arrival.answer_tokens);
  };
  EXPECT_EQ(cut(60, 41), std::pair(60, 41));
  EXPECT_EQ(cut(90, 41), std::pair(60, 41));
  EXPECT_EQ(cut(90, 90), std::pair(50, 51));
  EXPECT_EQ(cut(20, 90), std::pair(20, 81));
  EXPECT_EQ(cut(2147483647, 2147483647), std::pair(50, 51));
}

TEST(Workload, PromptsAreRandomAndShareNoPrefix) {
  const auto arrivals = made(many());
  std::set<std::vector<int32_t>> beginnings;
  std::set<int32_t> ids;
  for (const Arrival& arrival : arrivals) {
    const std::vector<int32_t>& prompt = arrival.prompt;
    beginnings.insert({prompt.begin(), prompt.begin() + 4});
    ids.insert(prompt.begin(), prompt.end());
  }
  EXPECT_EQ(beginnings.size(), arrivals.size());
  EXPECT_EQ(*ids.begin(), 0);  // out of 240,000
  EXPECT_EQ(*ids.rbegin(), kPromptIds - 1);
}

TEST(Workload, TheTraceIsScaledToTheRateAndRepeated) {
  // Recorded: 4 requests in 12 s. At 2/s, 8 take 4 s; rows 0 to 7 span 24 s of the trace.
  EXPECT_EQ(traced_times(2, 4), (std::vector<double>{0, 0, 0, 1.5, 2, 2, 2, 3.5}));
  const auto arrivals = made(traced(2, 4), kBurst);
  for (size_t i = 0; i < arrivals.size(); ++i) {
    EXPECT_EQ(arrivals[i].prompt.size(), 10 * (i % 4 + 1));
    EXPECT_EQ(arrivals[i].answer_tokens, static_cast<int>(i % 4 + 1));
  }
  EXPECT_NE(arrivals[0].prompt, arrivals[4].prompt);
  EXPECT_EQ(traced_times(1, 4), (std::vector<double>{0, 0, 0, 3}));
  EXPECT_EQ(traced_times(0.5, 4), (std::vector<double>{0, 0}));
  EXPECT_EQ(traced_times(0, 8), (std::vector<double>{0, 0, 0}));  // as recorded
  EXPECT_EQ(traced_times(0, 13), (std::vector<double>{0, 0, 0, 9, 12, 12, 12}));
}

TEST(Workload, SeedDeterminesArrivals) {
  const auto last = [](const WorkloadConfig& config) {
    const Arrival arrival = made(config).back();
    return std::pair(arrival.at, arrival.prompt);
  };
  const WorkloadConfig config = many(ArrivalProcess::kGamma, 2);
  const auto arrivals = made(config);
  WorkloadConfig other = config;
  other.shares = AdapterShares::kSkewed;  // must not affect times and lengths
  EXPECT_EQ(last(other), last(config));
  other.seed = 2;
  EXPECT_NE(made(other)[0].at, arrivals[0].at);
  EXPECT_NE(made(other)[0].prompt, arrivals[0].prompt);
  // Values from this implementation, to be reproduced with any standard library.
  EXPECT_NEAR(valora::seconds(made(many())[9].at), 0.636222500, 1e-8);
  EXPECT_NEAR(valora::seconds(arrivals[9].at), 0.394354554, 1e-8);
  EXPECT_EQ(arrivals[9].adapter, 5);
  EXPECT_EQ(arrivals[9].answer_tokens, 8);
  EXPECT_EQ(arrivals[9].prompt.at(7), 20203);
}

TEST(Workload, RefusesInvalidValuesByName) {
  const auto refused = [](const WorkloadConfig& config, std::span<const TraceRow> trace = kBurst) {
    const auto arrivals = make_workload(config, trace);
    if (arrivals.ok()) return std::string("nothing");
    EXPECT_EQ(arrivals.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(arrivals.error().message.rfind(arrivals.error().param + " must", 0), 0u);
    return arrivals.error().param;
  };
  const double nan = std::nan("");
  for (const double bad : {0.0, -1.0, nan, 1e5}) EXPECT_EQ(refused({.rate = bad}), "rate");
  for (const double bad : {-1.0, nan, 1e5}) EXPECT_EQ(refused(traced(bad, 100)), "rate");
  EXPECT_EQ(refused(traced(0, 1e8)), "rate");
  for (const double bad : {0.0, -1.0, nan, 1e10}) EXPECT_EQ(refused({.seconds = bad}), "seconds");
  for (const double bad : {0.0, -1.0, nan, 101.0}) EXPECT_EQ(refused({.cv = bad}), "cv");
  for (const double bad : {-1.0, nan}) EXPECT_EQ(refused({.alpha = bad}), "alpha");
  for (const double bad : {-0.1, 1.1, nan}) EXPECT_EQ(refused({.skewness = bad}), "skewness");
  EXPECT_EQ(refused({.adapters = -1}), "adapters");
  for (const int bad : {0, 513}) EXPECT_EQ(refused({.prompt_min = bad}), "prompt_min");
  for (const int bad : {0, 513}) EXPECT_EQ(refused({.answer_min = bad}), "answer_min");
  EXPECT_EQ(refused({.max_tokens = 1}), "max_tokens");
  EXPECT_EQ(refused(traced(1, 1), {}), "trace");
  EXPECT_EQ(refused(traced(1, 1), std::span(kBurst).first(3)), "trace");
  EXPECT_EQ(refused({.process = ArrivalProcess::kTrace, .prompt_min = 0}), "nothing");
}

TEST(Workload, NamesRoundTrip) {
  for (const auto one : {ArrivalProcess::kPoisson, ArrivalProcess::kGamma, ArrivalProcess::kTrace})
    EXPECT_EQ(parse_arrival_process(name_of(one)).value(), one);
  for (const auto one : {AdapterShares::kUniform, AdapterShares::kPowerLaw, AdapterShares::kSkewed})
    EXPECT_EQ(parse_adapter_shares(name_of(one)).value(), one);
  EXPECT_STREQ(name_of(ArrivalProcess::kGamma), "gamma");
  EXPECT_STREQ(name_of(AdapterShares::kPowerLaw), "power-law");
  EXPECT_EQ(parse_arrival_process("x").error().message,
            "unknown arrival process 'x'; known: poisson, gamma, trace");
  EXPECT_EQ(parse_adapter_shares("").error().message,
            "unknown adapter shares ''; known: uniform, power-law, skewed");
}

}  // namespace
}  // namespace valora::sim
