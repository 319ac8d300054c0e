#include "serving/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "serving/output/not_finite.h"
#include "serving/sampling/draw.h"

namespace valora::serving {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();
// Longer lists of best tokens cost as much as the whole row.
constexpr int32_t kMostWanted = 1024;
// kNucleusWanted: if only probabilities bound the set. kAllowedWanted: if few tokens are allowed.
constexpr int32_t kNucleusWanted = 512, kAllowedWanted = 64;
// Extra tokens, because different logits may become equal after scaling.
constexpr int32_t kSpare = 4;

std::vector<RankedToken> ranked(const std::vector<Candidate>& tokens, double normaliser) {
  std::vector<RankedToken> best;
  for (const Candidate& c : tokens)
    best.push_back({c.id, static_cast<float>(c.logit - normaliser)});
  return best;
}

void insert(std::vector<int32_t>& sorted, int32_t id) {
  const auto place = std::ranges::lower_bound(sorted, id);
  if (place == sorted.end() || *place != id) sorted.insert(place, id);
}

// SplitMix64: each draw is a pure function of the seed and the draw's number.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

Result<ScoredToken> score_token(std::span<const float> logits, int32_t id, int top) {
  // The row is not modified.
  const WholeRow row({const_cast<float*>(logits.data()), logits.size()});
  if (!row.numbers()) return not_finite("the model's logits");
  const double normaliser = row.log_sum_exp();
  const auto index = static_cast<size_t>(id);
  const float own = index < logits.size() ? logits[index] : kForbidden;
  ScoredToken scored{{id, static_cast<float>(own - normaliser)}, 1, {}};
  for (const float logit : logits) scored.rank += logit > own;
  if (top > 0) scored.top = ranked(*row.best_tokens(static_cast<size_t>(top)), normaliser);
  return scored;
}

Sampler::Sampler(SamplingSettings settings, std::span<const int32_t> prompt)
    : settings_(std::move(settings)) {
  if (penalises_repetition()) {
    prompt_tokens_.assign(prompt.begin(), prompt.end());
    std::sort(prompt_tokens_.begin(), prompt_tokens_.end());
    prompt_tokens_.erase(std::unique(prompt_tokens_.begin(), prompt_tokens_.end()),
                         prompt_tokens_.end());
  }
  changed_ = prompt_tokens_;
  for (const auto& [id, bias] : settings_.logit_bias) insert(changed_, id);
}

void Sampler::penalise(LogitRow& row) const {
  for (const auto& [id, bias] : settings_.logit_bias)
    if (float* const logit = row.find(id)) *logit += bias;
  if (penalises_repetition()) {
    const auto repeat = [&](int32_t id) {
      float* const logit = row.find(id);
      if (logit == nullptr) return;
      *logit = static_cast<float>(*logit > 0 ? *logit / settings_.repetition_penalty
                                             : *logit * settings_.repetition_penalty);
    };
    for (const int32_t id : prompt_tokens_) repeat(id);
    for (const auto& [id, times] : generated_)
      if (!std::binary_search(prompt_tokens_.begin(), prompt_tokens_.end(), id)) repeat(id);
  }
  if (settings_.presence_penalty != 0 || settings_.frequency_penalty != 0)
    for (const auto& [id, times] : generated_)
      if (float* const logit = row.find(id))
        *logit -=
            static_cast<float>(settings_.presence_penalty + settings_.frequency_penalty * times);
}

std::vector<int32_t> Sampler::ends_of_bad_words() const {
  std::vector<int32_t> ends;
  for (const std::vector<int32_t>& word : settings_.bad_words) {
    const std::span<const int32_t> before(word.data(), word.size() - 1);
    if (before.size() > written_.size()) continue;
    if (std::equal(before.begin(), before.end(), written_.end() - static_cast<long>(before.size())))
      ends.push_back(word.back());
  }
  return ends;
}

double Sampler::uniform() const {
  return static_cast<double>(mix(mix(settings_.seed) ^ draws_) >> 11) * 0x1.0p-53;
}

std::optional<kernels::CandidateQuery> Sampler::query(int32_t vocab,
                                                      std::span<const int32_t> forbidden,
                                                      std::span<const uint32_t> allowed) const {
  const bool report = settings_.top_logprobs >= 0;
  if (report && !settings_.allowed.empty()) return std::nullopt;
  kernels::CandidateQuery query;
  query.vocab = vocab;
  query.listed = changed_;
  for (const int32_t id : ends_of_bad_words()) insert(query.listed, id);
  for (const int32_t id : forbidden) insert(query.listed, id);
  for (const int32_t id : settings_.reported) insert(query.listed, id);
  std::erase_if(query.listed, [&](int32_t id) { return id < 0 || id >= vocab; });
  if (query.listed.size() > static_cast<size_t>(vocab) / 4) return std::nullopt;
  query.allowed.assign(allowed.begin(), allowed.end());
  if (allowed.empty()) {
    query.allowed = settings_.allowed;
  } else if (!settings_.allowed.empty()) {
    query.allowed.resize(std::min(query.allowed.size(), settings_.allowed.size()));
    for (size_t i = 0; i < query.allowed.size(); ++i) query.allowed[i] &= settings_.allowed[i];
  }
  query.sum = report;
  query.wanted = std::max(1, settings_.top_logprobs);
  if (settings_.temperature > 0) {
    const bool bounded = settings_.top_k > 0 || settings_.min_p > 0;
    query.temperature = bounded ? 0 : settings_.temperature;
    query.parts = draws_from_all(settings_);
    int32_t wanted = query.allowed.empty() ? 1 : kAllowedWanted;
    if (!query.parts) wanted = kNucleusWanted;
    if (settings_.top_k > 0) wanted = std::min(settings_.top_k, kMostWanted) + kSpare;
    query.wanted = std::max(query.wanted, wanted);
  }
  if (query.wanted > kMostWanted) return std::nullopt;
  return query;
}

std::optional<Result<SampledToken>> Sampler::sample(LogitRow& row,
                                                    std::span<const int32_t> forbidden,
                                                    std::span<const uint32_t> allowed) {
  if (!row.numbers()) return not_finite("the model's logits");
  if (!allowed.empty()) row.keep(allowed);
  SampledToken token;
  double normaliser = 0;
  const bool report = settings_.top_logprobs >= 0;
  if (report) {
    normaliser = row.log_sum_exp();
    if (settings_.top_logprobs > 0) {
      const auto top = row.best_tokens(static_cast<size_t>(settings_.top_logprobs));
      if (!top) return row.lacks({.all = true});
      token.top = ranked(*top, normaliser);
    }
    for (const int32_t id : settings_.reported) {
      const float* logit = row.find(id);
      if (!logit) return unprocessable("\"logprob_token_ids\" names a token that the model lacks");
      token.top.push_back({id, static_cast<float>(*logit - normaliser)});
    }
    row.remember();
  }
  penalise(row);
  if (!settings_.allowed.empty()) row.keep(settings_.allowed);
  const auto forbid = [&](int32_t id) {
    if (float* const logit = row.find(id)) *logit = kForbidden;
  };
  std::ranges::for_each(ends_of_bad_words(), forbid);
  std::ranges::for_each(forbidden, forbid);
  const Candidate best = row.best();
  if (best.logit == kForbidden && (!settings_.allowed.empty() || !settings_.bad_words.empty()))
    return unprocessable("\"allowed_token_ids\" and \"bad_words\" together exclude every token");
  if (best.logit == kForbidden)
    return internal("no token can be sampled: every logit is minus infinity");
  token.id = best.id;
  if (settings_.temperature != 0) {
    const auto drawn = draw(row, best, settings_, uniform());
    if (!drawn) return std::nullopt;
    token.id = *drawn;
    ++draws_;
  }
  if (report) token.logprob = static_cast<float>(row.before(token.id) - normaliser);
  ++generated_[token.id];
  if (penalises_generated()) insert(changed_, token.id);
  if (!settings_.bad_words.empty()) written_.push_back(token.id);
  return token;
}

Result<SampledToken> Sampler::sample(std::span<float> logits, std::span<const int32_t> forbidden,
                                     std::span<const uint32_t> allowed) {
  WholeRow row(logits);
  return *sample(row, forbidden, allowed);
}

}  // namespace valora::serving
