// Compares partial rows with whole rows: the same settings, seeds and logits must give the same
// tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "serving/sampling/sampler.h"

namespace valora::serving {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();

using kernels::CandidateQuery;
using kernels::PartSums;

// Answers queries as a device does: with sums in another order, not rounded to float.
class Device {
 public:
  Device(const CandidateQuery& query, const std::vector<float>& logits) {
    for (int32_t begin = 0; begin < query.vocab; begin += kernels::kPartTokens) {
      const int32_t end = std::min(query.vocab, begin + kernels::kPartTokens);
      parts_.push_back(sums_of(query, others_of(query, logits, begin, end)));
    }
    best_ = others_of(query, logits, 0, query.vocab);
    found.all = sums_of(query, best_);
    for (const float x : std::span(logits).first(static_cast<size_t>(query.vocab)))
      if (!(x < kInfinite)) found.all.numbers = 0;
    for (const int32_t id : query.listed) listed_.push_back(logits[static_cast<size_t>(id)]);
    found.listed = listed_;
    keep_best(query);
    found.best = best_;
    if (query.parts) found.parts = parts_;
  }
  kernels::Candidates found;

 private:
  static std::vector<Candidate> others_of(const CandidateQuery& query,
                                          const std::vector<float>& logits, int32_t begin,
                                          int32_t end) {
    std::vector<Candidate> others;
    for (int32_t id = begin; id < end; ++id) {
      const auto word = static_cast<size_t>(id / 32);
      const bool allowed = query.allowed.empty() || (word < query.allowed.size() &&
                                                     (query.allowed[word] >> (id % 32) & 1) != 0);
      if (allowed && logits[static_cast<size_t>(id)] > -kInfinite &&
          !std::ranges::binary_search(query.listed, id))
        others.push_back({logits[static_cast<size_t>(id)], id});
    }
    std::ranges::sort(others, kernels::better);
    return others;
  }
  static PartSums sums_of(const CandidateQuery& query, const std::vector<Candidate>& others) {
    PartSums sums;
    sums.count = static_cast<int32_t>(others.size());
    if (others.empty()) return sums;
    sums.largest = others[0].logit, sums.best = others[0].id;
    for (const Candidate& c : others) {
      const double below = double(c.logit) - sums.largest;
      if (query.sum) sums.sum += std::exp(below);
      if (query.temperature > 0) sums.scaled_sum += std::exp(below / query.temperature);
    }
    return sums;
  }
  // Includes all tokens equal to the last one, or keeps none if those are too many.
  void keep_best(const CandidateQuery& query) {
    if (query.wanted <= 1) return best_.clear();
    auto count = static_cast<size_t>(query.wanted);
    while (count < best_.size() && best_[count].logit == best_[count - 1].logit) ++count;
    if (count < best_.size()) best_.resize(count);
    if (best_.size() > static_cast<size_t>(query.wanted) + 64) best_.clear();
    std::ranges::reverse(best_);
  }

  std::vector<float> listed_;
  std::vector<Candidate> best_;
  std::vector<PartSums> parts_;
};

struct Counts {
  int choices = 0, asked = 0, part = 0, all = 0, errors = 0;
};

struct Arguments {
  std::vector<int32_t> forbidden;
  std::vector<uint32_t> allowed;
  int32_t max_requested = 1 << 20;  // upper bound on what the device returns
};

// Like an engine, provides missing data and tries again.
Result<SampledToken> sample_in_part(Sampler& sampler, const std::vector<float>& logits,
                                    const Arguments& arguments, Counts& counts) {
  ++counts.choices;
  const auto whole = [&] {
    std::vector<float> row = logits;
    return sampler.sample(row, arguments.forbidden, arguments.allowed);
  };
  auto query =
      sampler.query(static_cast<int32_t>(logits.size()), arguments.forbidden, arguments.allowed);
  if (!query) return whole();
  ++counts.asked;
  query->wanted = std::min(query->wanted, arguments.max_requested);
  const Device device(*query, logits);
  Missing missing;
  for (int attempt = 0; attempt < 2; ++attempt) {
    PartialRow row(*query, device.found);
    if (missing.part >= 0) {
      ++counts.part;
      const auto rest = std::span(logits).subspan(size_t(missing.part) * kernels::kPartTokens);
      row.tell(missing.part, rest.first(std::min<size_t>(kernels::kPartTokens, rest.size())));
    }
    auto token = sampler.sample(row, arguments.forbidden, arguments.allowed);
    if (token) return *token;
    missing = row.missing();
    EXPECT_TRUE(missing);
    if (missing.all) break;
  }
  EXPECT_TRUE(missing.all);
  ++counts.all;
  return whole();
}

class Cases {
 public:
  explicit Cases(uint64_t seed) : random_(seed) {}

  bool one_in(int n) { return below(n) == 0; }
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  float uniform(float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(random_);
  }
  // rounded: to produce ties.
  std::vector<float> logits(int vocab, bool rounded) {
    std::vector<float> row(static_cast<size_t>(vocab));
    const float size = one_in(3) ? 0.3f : uniform(0.5f, 6);
    std::normal_distribution<float> normal(0, size);
    for (float& x : row) {
      x = rounded ? std::round(normal(random_) * 4) / 4 : normal(random_);
      if (one_in(40)) x = -kInfinite;
    }
    if (one_in(8)) {  // different logits that are equal after scaling
      for (float& x : row) x = uniform(0, 3e-7f);
      row[static_cast<size_t>(below(vocab))] = 3;
    }
    if (one_in(60)) row[static_cast<size_t>(below(vocab))] = one_in(2) ? NAN : kInfinite;
    if (one_in(80)) std::ranges::fill(row, -kInfinite);
    return row;
  }
  std::vector<uint32_t> bits(int vocab) {
    std::vector<uint32_t> words(static_cast<size_t>(vocab + 31) / 32);
    const int odds = 1 + below(30);
    for (uint32_t& word : words)
      for (int bit = 0; bit < 32; ++bit) word |= uint32_t{one_in(odds)} << bit;
    return words;
  }
  std::vector<int32_t> tokens(int vocab, int count) {
    std::vector<int32_t> ids;
    for (int i = 0; i < count; ++i) ids.push_back(below(vocab + 3) - 1);
    return ids;
  }
  SamplingSettings settings(int vocab) {
    SamplingSettings s;
    s.temperature = one_in(3) ? 0 : uniform(0.1f, 2);
    if (one_in(2)) s.top_p = uniform(0.01f, 1);
    if (one_in(3)) s.top_k = 1 + below(vocab);
    if (one_in(3)) s.top_k = 1 + below(30);
    if (one_in(3)) s.min_p = uniform(0.001f, 0.5f);
    if (one_in(3)) s.repetition_penalty = uniform(0.5f, 2);
    if (one_in(3)) s.presence_penalty = uniform(-2, 2);
    if (one_in(3)) s.frequency_penalty = uniform(-2, 2);
    if (one_in(3))
      for (const int32_t id : tokens(vocab, 20)) s.logit_bias.emplace_back(id, uniform(-9, 9));
    if (one_in(6)) s.allowed = bits(vocab);
    if (one_in(3)) s.bad_words = {{below(vocab)}, {below(4), below(4)}, {below(8), 1, 2}};
    s.seed = static_cast<uint64_t>(below(1 << 30));
    s.top_logprobs = one_in(2) ? -1 : below(20);
    return s;
  }
  Arguments arguments(int vocab) {
    Arguments a;
    if (one_in(4)) a.forbidden = tokens(vocab, 3);
    if (one_in(4)) a.allowed = bits(vocab);
    if (one_in(2)) a.max_requested = 1 + below(40);
    return a;
  }

 private:
  std::mt19937_64 random_;
};

void expect_same(const RankedToken& a, const RankedToken& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_NEAR(a.logprob, b.logprob, 1e-6 * (1 + std::abs(b.logprob)));
}

// Generates some tokens of one answer.
void compare(Cases& cases, int vocab, const SamplingSettings& settings, Counts& counts) {
  const std::vector<int32_t> prompt = cases.tokens(vocab, 30);
  Sampler whole(settings, prompt), part(settings, prompt);
  const bool rounded = cases.one_in(3);
  for (int step = 0; step < 5; ++step) {
    const std::vector<float> logits = cases.logits(vocab, rounded);
    const Arguments arguments = cases.arguments(vocab);
    std::vector<float> row = logits;
    const auto expected = whole.sample(row, arguments.forbidden, arguments.allowed);
    const auto token = sample_in_part(part, logits, arguments, counts);
    ASSERT_EQ(token.ok(), expected.ok());
    if (!token.ok()) {
      ++counts.errors;
      EXPECT_EQ(token.error().message, expected.error().message);
      EXPECT_EQ(token.error().code, expected.error().code);
      continue;
    }
    expect_same({token->id, token->logprob}, {expected->id, expected->logprob});
    ASSERT_EQ(token->top.size(), expected->top.size());
    for (size_t i = 0; i < token->top.size(); ++i) expect_same(token->top[i], expected->top[i]);
  }
}

TEST(PartialRow, SamplesSameTokensAsWholeRow) {
  Counts counts;
  for (uint64_t seed = 0; seed < 600 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Cases cases(seed);
    const int vocab = cases.one_in(12) ? 4000 + cases.below(6000) : 1 + cases.below(400);
    compare(cases, vocab, cases.settings(vocab), counts);
  }
  EXPECT_GT(counts.asked, counts.choices * 3 / 4);
  EXPECT_LT(counts.all, counts.asked / 2);
  EXPECT_GT(counts.part, 20);
  EXPECT_GT(counts.all, 10);
  EXPECT_GT(counts.errors, 50);
}

// The most common settings, and typical logits.
TEST(PartialRow, RarelyNeedsWholeRow) {
  const SamplingSettings usual[] = {{.temperature = 0},
                                    {.temperature = 0, .repetition_penalty = 1.05},
                                    {.temperature = 0.7, .top_p = 0.8, .top_k = 20},
                                    {.temperature = 0.7, .top_p = 0.9},
                                    {.temperature = 0.6, .min_p = 0.05},
                                    {.temperature = 1}};
  for (const SamplingSettings& each : usual) {
    Counts counts;
    for (uint64_t seed = 0; seed < 10; ++seed) {
      Cases cases(seed);
      SamplingSettings settings = each;
      settings.seed = seed;
      Sampler whole(settings, {}), part(settings, {});
      for (int step = 0; step < 3; ++step) {
        std::vector<float> logits(9000);
        for (float& x : logits) x = 3 * std::log(-1 / std::log(cases.uniform(1e-6f, 0.99999f)));
        std::vector<float> row = logits;
        EXPECT_EQ(whole.sample(row, {})->id, sample_in_part(part, logits, {}, counts)->id);
      }
    }
    EXPECT_EQ(counts.asked, 30);
    EXPECT_LE(counts.all, 3) << each.temperature << ' ' << each.top_p << ' ' << each.top_k;
  }
}

// Draws at and next to boundaries between tokens, where sums in another order may decide
// differently.
TEST(PartialRow, RequestsWholeRowAtBoundaries) {
  std::vector<float> logits(8192, -kInfinite);
  logits[3] = logits[5000] = logits[8000] = 0;
  for (const double p : {1.0 / 3, 2.0 / 3}) {
    SamplingSettings settings;
    settings.top_p = p;
    Counts counts;
    Sampler whole(settings, {}), part(settings, {});
    std::vector<float> row = logits;
    EXPECT_EQ(whole.sample(row, {})->id, sample_in_part(part, logits, {}, counts)->id);
    EXPECT_EQ(counts.all, 1) << p;
  }
}

TEST(PartialRow, FailedChoiceLeavesStateUnchanged) {
  SamplingSettings settings;
  settings.temperature = 1, settings.top_k = 5, settings.frequency_penalty = 1, settings.seed = 9;
  std::vector<float> logits(600);
  Cases cases(1);
  for (float& x : logits) x = cases.uniform(0, 1);
  Sampler whole(settings, {}), part(settings, {});
  for (int step = 0; step < 20; ++step) {
    auto query = part.query(600, {});
    ASSERT_TRUE(query);
    query->wanted = 3;  // fewer than it asked for
    const Device device(*query, logits);
    PartialRow short_row(*query, device.found);
    EXPECT_FALSE(part.sample(short_row, {}).has_value());
    EXPECT_TRUE(short_row.missing().all);
    std::vector<float> a = logits, b = logits;
    EXPECT_EQ(whole.sample(a, {})->id, part.sample(b, {})->id);
  }
}

}  // namespace
}  // namespace valora::serving
