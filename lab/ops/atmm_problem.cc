#include "lab/ops/atmm_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/ops/random_tensors.h"
#include "lab/serve/model_mix.h"

namespace valora::bench {
namespace {

std::string rank_text(const std::vector<int64_t>& ranks) {
  return ranks.size() == 1 ? std::to_string(ranks[0]) : "mixed";
}

// The adapter of each request, sorted. Unused adapters are omitted.
std::vector<size_t> adapters_of_requests(const AtmmShape& shape) {
  const int requests = static_cast<int>(shape.requests);
  int models = requests;
  if (shape.popularity == "identical") models = 1;
  if (shape.popularity == "uniform") models = static_cast<int>(std::ceil(std::sqrt(requests)));
  const auto mix = mix_models(shape.popularity == "identical" ? "uniform" : shape.popularity,
                              models, requests, 5);
  TORCH_CHECK(mix.ok(), mix.ok() ? "" : mix.error().message);
  std::vector<int> sorted = *mix;
  std::sort(sorted.begin(), sorted.end());
  std::vector<size_t> adapters{0};
  for (size_t i = 1; i < sorted.size(); ++i)
    adapters.push_back(adapters.back() + (sorted[i] != sorted[i - 1]));
  return adapters;
}

std::vector<AtmmAdapter> make_adapters(const AtmmShape& shape, size_t count) {
  int64_t elements = 0;
  const auto rank = [&](size_t i) { return shape.ranks[i % shape.ranks.size()]; };
  for (size_t i = 0; i < count; ++i) elements += 2 * rank(i) * shape.hidden;
  const at::Tensor values =
      normal_tensor({elements}, at::kBFloat16, 1 / std::sqrt(static_cast<double>(shape.hidden)), 3);
  std::vector<AtmmAdapter> adapters;
  int64_t at = 0;
  const auto take = [&](int64_t rows, int64_t columns) {
    at += rows * columns;
    return values.narrow(0, at - rows * columns, rows * columns).view({rows, columns}).clone();
  };
  for (size_t i = 0; i < count; ++i) {
    at::Tensor a = take(rank(i), shape.hidden),
               b = take(shape.hidden, rank(i))
                       .mul_(std::sqrt(static_cast<double>(shape.hidden) / rank(i)));
    adapters.push_back({a, b, i % 3 == 2 ? -0.5f : 2.f});
  }
  return adapters;
}

}  // namespace

std::string AtmmShape::label() const {
  const std::string phase =
      tokens_per_request == 1 ? "decode" : fmt::format("prefill {}", tokens_per_request);
  return fmt::format("{} requests {} rank {} hidden {} {}{}", phase, requests, rank_text(ranks),
                     hidden, popularity, cold ? " cold" : "");
}

Json AtmmShape::fields() const {
  return {{"phase", tokens_per_request == 1 ? "decode" : "prefill"},
          {"requests", requests},
          {"tokens", tokens()},
          {"rank", ranks.size() == 1 ? Json(ranks[0]) : Json("mixed")},
          {"hidden", hidden},
          {"popularity", popularity},
          {"adapters", adapters_of_requests(*this).back() + 1},
          {"cold", cold}};
}

Work AtmmProblem::work() const {
  double adapter_bytes = 0, operations = 0;
  for (const AtmmAdapter& adapter : layers.front())
    adapter_bytes += static_cast<double>(adapter.a.nbytes() + adapter.b.nbytes());
  for (const AtmmRun& run : runs) {
    const double rank = static_cast<double>(layers.front()[run.adapter].a.size(0));
    operations += 4.0 * rank * static_cast<double>((run.end - run.begin) * shape.hidden);
  }
  const double bytes =
      adapter_bytes + 3 * static_cast<double>(x.nbytes());  // x is read; y is read and written
  if (shape.cold) return {adapter_bytes, operations};
  return {bytes > static_cast<double>(last_level_cache()) ? bytes : 0, operations};
}

AtmmProblem make_problem(const AtmmShape& shape) {
  AtmmProblem problem{
      shape, normal_tensor({shape.tokens(), shape.hidden}, at::kBFloat16, 1, 4), {}, {}};
  const std::vector<size_t> asked = adapters_of_requests(shape);
  for (size_t i = 0; i < asked.size(); ++i) {
    const int64_t begin = static_cast<int64_t>(i) * shape.tokens_per_request,
                  end = begin + shape.tokens_per_request;
    if (!problem.runs.empty() && problem.runs.back().adapter == asked[i])
      problem.runs.back().end = end;
    else
      problem.runs.push_back({begin, end, asked[i]});
  }
  problem.layers.push_back(make_adapters(shape, asked.back() + 1));
  if (!shape.cold) return problem;
  int64_t bytes = 0;
  for (const AtmmAdapter& adapter : problem.layers[0])
    bytes += static_cast<int64_t>(adapter.a.nbytes() + adapter.b.nbytes());
  for (int64_t i = 1; i < cold_copies(bytes); ++i)
    problem.layers.push_back(make_adapters(shape, asked.back() + 1));
  return problem;
}

}  // namespace valora::bench
