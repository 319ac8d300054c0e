#include "serving/sampling/logit_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/logits.h"

namespace valora::serving {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

// The best tokens with finite logits.
std::vector<Candidate> best_of(std::vector<Candidate> tokens, size_t count) {
  const size_t n = std::min(count, tokens.size());
  std::partial_sort(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n), tokens.end(),
                    kernels::better);
  tokens.resize(n);
  while (!tokens.empty() && tokens.back().logit == kNone) tokens.pop_back();
  return tokens;
}

bool has_bit(std::span<const uint32_t> allowed, int32_t id) {
  const auto word = static_cast<size_t>(id) / 32;
  return word < allowed.size() && ((allowed[word] >> (id % 32)) & 1) != 0;
}

}  // namespace

bool WholeRow::numbers() const { return kernels::argmax(logits_).numbers; }

void WholeRow::keep(std::span<const uint32_t> allowed) { kernels::keep_allowed(logits_, allowed); }

double WholeRow::log_sum_exp() const {
  const double top = best().logit;
  double sum = 0;
  for (const float logit : logits_) sum += std::exp(double(logit) - top);
  return top + std::log(sum);
}

std::optional<std::vector<Candidate>> WholeRow::best_tokens(size_t count) const {
  std::vector<Candidate> all;
  all.reserve(logits_.size());
  for (size_t i = 0; i < logits_.size(); ++i) all.push_back({logits_[i], static_cast<int32_t>(i)});
  return best_of(std::move(all), count);
}

Candidate WholeRow::best() const {
  const auto id = static_cast<int32_t>(kernels::argmax(logits_).index);
  return {logits_[static_cast<size_t>(id)], id};
}

std::vector<Candidate> WholeRow::finite() const {
  std::vector<Candidate> tokens;
  tokens.reserve(logits_.size());
  for (size_t i = 0; i < logits_.size(); ++i)
    if (logits_[i] != kNone) tokens.push_back({logits_[i], static_cast<int32_t>(i)});
  return tokens;
}

PartialRow::PartialRow(const kernels::CandidateQuery& query, const kernels::Candidates& found)
    : query_(query),
      found_(found),
      best_other_{found.all.largest, found.all.best},
      listed_(found.listed.begin(), found.listed.end()) {}

std::span<const Candidate> PartialRow::best_others() const {
  if (!found_.best.empty()) return found_.best;
  return {&best_other_, found_.all.best < 0 ? size_t{0} : size_t{1}};
}

bool PartialRow::complete() const {
  return best_others().size() == static_cast<size_t>(found_.all.count);
}

Candidate PartialRow::bound() const {
  const auto others = best_others();
  return others.empty() ? Candidate{kNone, 0} : *std::ranges::max_element(others, kernels::better);
}

// Other tokens need no change: they are allowed, or were excluded by the query.
void PartialRow::keep(std::span<const uint32_t> allowed) {
  for (size_t i = 0; i < listed_.size(); ++i)
    if (!has_bit(allowed, query_.listed[i])) listed_[i] = kNone;
}

std::optional<size_t> PartialRow::place_of(int32_t id) const {
  const auto found = std::ranges::lower_bound(query_.listed, id);
  if (found == query_.listed.end() || *found != id) return std::nullopt;
  return static_cast<size_t>(found - query_.listed.begin());
}

float* PartialRow::find(int32_t id) {
  const auto place = place_of(id);
  return place ? &listed_[*place] : nullptr;
}

float PartialRow::before(int32_t id) const {
  if (const auto place = place_of(id)) return before_[*place];
  for (const Candidate& c : best_others())
    if (c.id == id) return c.logit;
  // It was drawn from a part.
  return part_[static_cast<size_t>(id - known_part_ * kernels::kPartTokens)];
}

double PartialRow::log_sum_exp() const {
  const double top = best().logit;
  double sum = 0;
  if (found_.all.best >= 0) sum += found_.all.sum * std::exp(found_.all.largest - top);
  for (const float logit : listed_) sum += std::exp(double(logit) - top);
  return top + std::log(sum);
}

std::optional<std::vector<Candidate>> PartialRow::best_tokens(size_t count) const {
  std::vector<Candidate> best = best_of(finite(), count);
  if (complete()) return best;
  const bool all_better = best.size() == count && !kernels::better(bound(), best.back());
  return count == 0 || all_better ? std::optional(std::move(best)) : std::nullopt;
}

Candidate PartialRow::best() const {
  Candidate best{kNone, 0};
  for (const Candidate& c : finite())
    if (best.logit == kNone || kernels::better(c, best)) best = c;
  return best;
}

std::vector<Candidate> PartialRow::listed() const {
  std::vector<Candidate> tokens;
  for (size_t i = 0; i < listed_.size(); ++i)
    if (listed_[i] != kNone) tokens.push_back({listed_[i], query_.listed[i]});
  return tokens;
}

std::vector<Candidate> PartialRow::finite() const {
  std::vector<Candidate> tokens = listed();
  tokens.insert(tokens.end(), best_others().begin(), best_others().end());
  return tokens;
}

std::optional<std::vector<Candidate>> PartialRow::of_part(int part) const {
  if (part != known_part_) return std::nullopt;
  std::vector<Candidate> tokens;
  const int32_t first = part * kernels::kPartTokens;
  size_t place =
      static_cast<size_t>(std::ranges::lower_bound(query_.listed, first) - query_.listed.begin());
  for (size_t i = 0; i < part_.size(); ++i) {
    const int32_t id = first + static_cast<int32_t>(i);
    float logit = part_[i];
    if (place < listed_.size() && query_.listed[place] == id)
      logit = listed_[place++];
    else if (!query_.allowed.empty() && !has_bit(query_.allowed, id))
      continue;
    if (logit != kNone) tokens.push_back({logit, id});
  }
  return tokens;
}

}  // namespace valora::serving
