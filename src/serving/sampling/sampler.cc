#include "serving/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/logits.h"

namespace valora::serving {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

struct Candidate {
  float logit;
  int32_t id;
};

// Higher logit first, then lower id, so that ties have a defined order.
bool better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

int32_t argmax(std::span<const float> logits) {
  return static_cast<int32_t>(kernels::argmax(logits).index);
}

double log_sum_exp(std::span<const float> logits) {
  const double top = logits[argmax(logits)];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double(logit) - top);
  return top + std::log(sum);
}

std::vector<RankedToken> best_tokens(std::span<const float> logits, int count, double normaliser) {
  std::vector<Candidate> all;
  all.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) all.push_back({logits[i], static_cast<int32_t>(i)});
  const size_t n = std::min<size_t>(count, all.size());
  std::partial_sort(all.begin(), all.begin() + n, all.end(), better);
  std::vector<RankedToken> best;
  for (size_t i = 0; i < n && all[i].logit != kForbidden; ++i)
    best.push_back({all[i].id, static_cast<float>(all[i].logit - normaliser)});
  return best;
}

// Keeps the fewest best candidates whose probabilities sum to top_p. Sorts in growing chunks,
// because the tail of a large vocabulary is not needed.
void keep_nucleus(std::vector<Candidate>& candidates, double top_p, double total) {
  size_t sorted = 0, chunk = 64;
  double mass = 0;
  while (sorted < candidates.size()) {
    const size_t end = std::min(candidates.size(), sorted + chunk);
    std::partial_sort(candidates.begin() + sorted, candidates.begin() + end, candidates.end(),
                      better);
    for (; sorted < end; ++sorted) {
      mass += std::exp(double(candidates[sorted].logit)) / total;
      if (mass >= top_p) return candidates.resize(sorted + 1);
    }
    chunk *= 4;
  }
}

// SplitMix64: each draw is a pure function of the seed and the number of the draw.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

Result<ScoredToken> score_token(std::span<const float> logits, int32_t id, int top) {
  if (!kernels::argmax(logits).numbers) return internal("the model's logits are NaN or infinite");
  const double normaliser = log_sum_exp(logits);
  const float own = logits[static_cast<size_t>(id)];
  ScoredToken scored{{id, static_cast<float>(own - normaliser)}, 1, {}};
  for (const float logit : logits) scored.rank += logit > own;
  if (top > 0) scored.top = best_tokens(logits, top, normaliser);
  return scored;
}

Sampler::Sampler(SamplingSettings settings, std::span<const int32_t> prompt)
    : settings_(std::move(settings)) {
  if (settings_.repetition_penalty == 1) return;
  prompt_tokens_.assign(prompt.begin(), prompt.end());
  std::sort(prompt_tokens_.begin(), prompt_tokens_.end());
  prompt_tokens_.erase(std::unique(prompt_tokens_.begin(), prompt_tokens_.end()),
                       prompt_tokens_.end());
}

void Sampler::penalise(std::span<float> logits) const {
  const auto in_range = [&](int32_t id) {
    return id >= 0 && static_cast<size_t>(id) < logits.size();
  };
  for (const auto& [id, bias] : settings_.logit_bias)
    if (in_range(id)) logits[id] += bias;
  if (settings_.repetition_penalty != 1) {
    const auto repeat = [&](int32_t id) {
      if (!in_range(id)) return;
      float& logit = logits[id];
      logit = static_cast<float>(logit > 0 ? logit / settings_.repetition_penalty
                                           : logit * settings_.repetition_penalty);
    };
    for (const int32_t id : prompt_tokens_) repeat(id);
    for (const auto& [id, times] : generated_)
      if (!std::binary_search(prompt_tokens_.begin(), prompt_tokens_.end(), id)) repeat(id);
  }
  if (settings_.presence_penalty != 0 || settings_.frequency_penalty != 0)
    for (const auto& [id, times] : generated_)
      if (in_range(id))
        logits[id] -=
            static_cast<float>(settings_.presence_penalty + settings_.frequency_penalty * times);
}

// The last token of each word whose other tokens were generated just now.
void Sampler::forbid_bad_words(std::span<float> logits) const {
  for (const std::vector<int32_t>& word : settings_.bad_words) {
    const std::span<const int32_t> before(word.data(), word.size() - 1);
    const auto last = static_cast<size_t>(word.back());
    if (before.size() > written_.size() || last >= logits.size()) continue;
    if (std::equal(before.begin(), before.end(), written_.end() - static_cast<long>(before.size())))
      logits[last] = kForbidden;
  }
}

double Sampler::uniform() {
  return static_cast<double>(mix(mix(settings_.seed) ^ draws_++) >> 11) * 0x1.0p-53;
}

int32_t Sampler::draw(std::span<const float> logits, int32_t best) {
  if (settings_.temperature == 0) return best;
  // Logits minus the highest one, over the temperature, so that nothing overflows.
  std::vector<Candidate> candidates;
  candidates.reserve(logits.size());
  const double top = logits[best];
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] != kForbidden)
      candidates.push_back(
          {static_cast<float>((logits[i] - top) / settings_.temperature), static_cast<int32_t>(i)});
  const bool ordered = settings_.top_k == 0 && settings_.top_p >= 1;
  if (settings_.top_k > 0 && static_cast<size_t>(settings_.top_k) < candidates.size()) {
    std::nth_element(candidates.begin(), candidates.begin() + settings_.top_k - 1, candidates.end(),
                     better);
    candidates.resize(settings_.top_k);
  }
  if (settings_.min_p > 0) {
    const double least = std::log(settings_.min_p);
    std::erase_if(candidates, [&](const Candidate& c) { return c.logit < least; });
  }
  const auto weight = [&](const Candidate& c) { return std::exp(double(c.logit)); };
  const auto sum = [&] {
    double total = 0;
    for (const Candidate& c : candidates) total += weight(c);
    return total;
  };
  if (settings_.top_p < 1) keep_nucleus(candidates, settings_.top_p, sum());
  if (!ordered)
    std::sort(candidates.begin(), candidates.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
  double rest = uniform() * sum();
  for (const Candidate& c : candidates)
    if ((rest -= weight(c)) <= 0) return c.id;
  return candidates.back().id;
}

Result<SampledToken> Sampler::sample(std::span<float> logits, std::span<const int32_t> forbidden,
                                     std::span<const uint32_t> allowed) {
  if (!kernels::argmax(logits).numbers) return internal("the model's logits are NaN or infinite");
  if (!allowed.empty()) kernels::keep_allowed(logits, allowed);
  SampledToken token;
  double normaliser = 0;
  const bool report = settings_.top_logprobs >= 0;
  if (report) {
    normaliser = log_sum_exp(logits);
    if (settings_.top_logprobs > 0)
      token.top = best_tokens(logits, settings_.top_logprobs, normaliser);
  }
  const std::vector<float> before =
      report ? std::vector<float>(logits.begin(), logits.end()) : std::vector<float>();
  penalise(logits);
  if (!settings_.allowed.empty()) kernels::keep_allowed(logits, settings_.allowed);
  forbid_bad_words(logits);
  for (const int32_t id : forbidden)
    if (id >= 0 && static_cast<size_t>(id) < logits.size()) logits[id] = kForbidden;
  const int32_t best = argmax(logits);
  if (logits[best] == kForbidden && (!settings_.allowed.empty() || !settings_.bad_words.empty()))
    return unprocessable("\"allowed_token_ids\" and \"bad_words\" leave no token to choose");
  if (logits[best] == kForbidden)
    return internal("no token can be sampled: every logit is minus infinity");
  token.id = draw(logits, best);
  if (report) token.logprob = static_cast<float>(before[token.id] - normaliser);
  ++generated_[token.id];
  if (!settings_.bad_words.empty()) written_.push_back(token.id);
  return token;
}

}  // namespace valora::serving
