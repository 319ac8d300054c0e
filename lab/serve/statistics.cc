#include "lab/serve/statistics.h"

#include <algorithm>
#include <numeric>

#include "base/quantile.h"

namespace valora::bench {
namespace {

Group group_of(std::span<const RequestRecord* const> records) {
  Group group;
  std::vector<double> ttft, tpot, itl, e2e;
  for (const RequestRecord* r : records) {
    ++group.requests;
    if (!r->error.empty()) {
      ++group.failed;
      ++group.errors[r->error];
      continue;
    }
    group.short_answers += r->completion_tokens < r->wanted_tokens;
    group.prompt_tokens += r->prompt_tokens;
    group.cached_tokens += r->cached_tokens;
    group.completion_tokens += r->completion_tokens;
    e2e.push_back(r->ended - r->sent);
    itl.insert(itl.end(), r->gaps.begin(), r->gaps.end());
    if (r->first_token == 0) continue;
    ttft.push_back(r->first_token - r->sent);
    if (r->completion_tokens > 1)
      tpot.push_back((r->ended - r->first_token) / (r->completion_tokens - 1));
  }
  group.ttft = distribution_of(std::move(ttft));
  group.tpot = distribution_of(std::move(tpot));
  group.itl = distribution_of(std::move(itl));
  group.e2e = distribution_of(std::move(e2e));
  return group;
}

double duration_of(std::span<const RequestRecord> records) {
  if (records.empty()) return 0;
  const auto first = std::min_element(records.begin(), records.end(),
                                      [](auto& a, auto& b) { return a.sent < b.sent; });
  const auto last = std::max_element(records.begin(), records.end(),
                                     [](auto& a, auto& b) { return a.ended < b.ended; });
  return last->ended - first->sent;
}

}  // namespace

Distribution distribution_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {values.size(),
          std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()),
          quantile(values, 0.5), quantile(values, 0.9), quantile(values, 0.99)};
}

Summary summarize(std::span<const RequestRecord> records) {
  std::vector<const RequestRecord*> all;
  std::map<std::string, std::vector<const RequestRecord*>> by_model;
  for (const RequestRecord& record : records) {
    all.push_back(&record);
    by_model[record.model].push_back(&record);
  }
  Summary summary;
  summary.seconds = duration_of(records);
  summary.all = group_of(all);
  for (const auto& [model, own] : by_model) summary.models.emplace_back(model, group_of(own));
  if (summary.seconds <= 0) return summary;
  const Group& g = summary.all;
  summary.requests_per_second = (g.requests - g.failed) / summary.seconds;
  summary.output_tokens_per_second = static_cast<double>(g.completion_tokens) / summary.seconds;
  summary.total_tokens_per_second =
      static_cast<double>(g.prompt_tokens + g.completion_tokens) / summary.seconds;
  return summary;
}

}  // namespace valora::bench
