#include "serving/sampling/draw.h"

#include <algorithm>
#include <cmath>

namespace valora::serving {
namespace {

using kernels::better;

double weight(const Candidate& c) { return std::exp(double(c.logit)); }

double sum_of(const std::vector<Candidate>& candidates) {
  double total = 0;
  for (const Candidate& c : candidates) total += weight(c);
  return total;
}

// Scales logits: subtracts the highest one, so that nothing overflows, and divides by the
// temperature.
struct Scale {
  double top, temperature;
  float of(float logit) const { return static_cast<float>((logit - top) / temperature); }
  void apply(std::vector<Candidate>& candidates) const {
    for (Candidate& c : candidates) c.logit = of(c.logit);
  }
};

// Relative error of a sum in double when its terms are added in another order.
double error_of_order(size_t terms) { return std::ldexp(static_cast<double>(terms + 16), -52); }

// Relative error of a sum of weights over n tokens whose scaled logits were not rounded to float.
// Rounding changes a weight w = exp(-c) by at most 2^-24 c w, and the sum of c w over the sum of w
// is at most log(n): it is the entropy minus the logarithm of the sum, which is at least 1.
double error_of_rounding(size_t tokens) {
  return std::ldexp(1.05 * (std::log(static_cast<double>(tokens)) + 1), -24) +
         error_of_order(tokens);
}

// The tokens that are not among the candidates.
struct Rest {
  bool none = true;
  float bound = 0;   // upper bound of their scaled logits
  double total = 0;  // sum of all weights, candidates included
  double error = 0;  // its largest relative deviation from a whole row's sum
};

// Keeps the fewest best candidates whose probabilities sum to top_p. Sorts in growing chunks,
// because the tail of a large vocabulary is not needed. Returns false if the set is not certain.
bool keep_nucleus(std::vector<Candidate>& candidates, double top_p, double total,
                  const Rest& rest) {
  size_t sorted = 0, chunk = 64;
  double mass = 0;
  while (sorted < candidates.size()) {
    const size_t end = std::min(candidates.size(), sorted + chunk);
    std::partial_sort(candidates.begin() + sorted, candidates.begin() + end, candidates.end(),
                      better);
    for (; sorted < end; ++sorted) {
      if (!rest.none && candidates[sorted].logit <= rest.bound) return false;
      mass += weight(candidates[sorted]) / total;
      if (rest.error > 0 && std::abs(mass - top_p) <= rest.error) return false;
      if (mass >= top_p) {
        candidates.resize(sorted + 1);
        return true;
      }
    }
    chunk *= 4;
  }
  return rest.none;
}

// candidates: scaled; in order of id if they come from a whole row.
std::optional<int32_t> choose(std::vector<Candidate> candidates, bool whole, Rest rest,
                              const SamplingSettings& settings, double uniform) {
  bool in_order = whole;
  if (settings.top_k > 0) {
    const auto k = static_cast<size_t>(settings.top_k);
    if (!rest.none && k > candidates.size()) return std::nullopt;
    if (!rest.none || k < candidates.size()) {
      std::nth_element(candidates.begin(), candidates.begin() + settings.top_k - 1,
                       candidates.end(), better);
      candidates.resize(k);
      if (!rest.none && candidates.back().logit <= rest.bound) return std::nullopt;
      rest.none = true, in_order = false;
    }
  }
  if (settings.min_p > 0) {
    const double least = std::log(settings.min_p);
    if (!rest.none && rest.bound >= least) return std::nullopt;
    rest.none = true;
    std::erase_if(candidates, [&](const Candidate& c) { return c.logit < least; });
  }
  if (settings.top_p < 1) {
    if (rest.none) rest.error = whole ? 0 : error_of_order(candidates.size());
    const double total = rest.none ? sum_of(candidates) : rest.total;
    if (!keep_nucleus(candidates, settings.top_p, total, rest)) return std::nullopt;
    rest.none = true, in_order = false;
  }
  if (!rest.none) return std::nullopt;
  if (!in_order)
    std::sort(candidates.begin(), candidates.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
  double left = uniform * sum_of(candidates);
  for (const Candidate& c : candidates)
    if ((left -= weight(c)) <= 0) return c.id;
  return candidates.back().id;
}

// The weight of each part of the row.
std::vector<double> weights_of_parts(const PartialRow& row, const Scale& scale) {
  std::vector<double> weights;
  for (const kernels::PartSums& part : row.parts())
    weights.push_back(part.best < 0 ? 0
                                    : part.scaled_sum *
                                          std::exp((part.largest - scale.top) / scale.temperature));
  for (Candidate c : row.listed()) {
    c.logit = scale.of(c.logit);
    weights[static_cast<size_t>(c.id / kernels::kPartTokens)] += weight(c);
  }
  return weights;
}

// Draws from all tokens in order of id: first a part, then a token in it. The choice is certain if
// its distance to both neighbours exceeds the error of the sums.
std::optional<int32_t> draw_by_parts(PartialRow& row, const Scale& scale, double uniform) {
  const std::vector<double> weights = weights_of_parts(row, scale);
  double total = 0;
  for (const double w : weights) total += w;
  const double margin = 2.1 * error_of_rounding(static_cast<size_t>(row.query().vocab)) * total;
  double left = uniform * total;
  size_t part = 0;
  while (part < weights.size() && left - weights[part] > margin) left -= weights[part++];
  if (part == weights.size() || left - weights[part] >= -margin) return row.lacks({.all = true});
  auto tokens = row.of_part(static_cast<int>(part));
  if (!tokens) return row.lacks({.part = static_cast<int>(part)});
  scale.apply(*tokens);
  for (const Candidate& c : *tokens) {
    left -= weight(c);
    if (left > margin) continue;
    if (left >= -margin) break;
    return c.id;
  }
  return row.lacks({.all = true});
}

}  // namespace

std::optional<int32_t> draw(LogitRow& row, const Candidate& best, const SamplingSettings& settings,
                            double uniform) {
  const Scale scale{best.logit, settings.temperature};
  Rest rest;
  PartialRow* const partial = row.in_part();
  if (partial != nullptr && !partial->complete()) {
    if (draws_from_all(settings)) return draw_by_parts(*partial, scale, uniform);
    rest.none = false;
    rest.bound = scale.of(partial->bound().logit);
    const kernels::PartSums& others = partial->others();
    rest.total = others.scaled_sum * std::exp((others.largest - scale.top) / scale.temperature);
    for (Candidate c : partial->listed()) {
      c.logit = scale.of(c.logit);
      rest.total += weight(c);
    }
    rest.error = error_of_rounding(static_cast<size_t>(partial->query().vocab));
  }
  std::vector<Candidate> candidates = row.finite();
  scale.apply(candidates);
  const auto id = choose(std::move(candidates), partial == nullptr, rest, settings, uniform);
  return id ? id : row.lacks({.all = true});
}

}  // namespace valora::serving
