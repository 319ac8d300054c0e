// All requests in fcfs_order(), unmerged. PolicyOptions::max_adapters: once the step has this many
// adapters, waiting requests of these adapters go before others (S-LoRA, appendix A.2).
#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "scheduler/policies/step_batch.h"

namespace valora::scheduler {
namespace {

// Once the step has `most` adapters, waiting requests of these adapters go before others of the
// same priority, except others that have waited longer than their tolerance.
void cluster(std::vector<RequestIndex>& order, const PolicyState& state, size_t most,
             const std::function<bool(const Request&)>& waited_long) {
  std::vector<AdapterId> used;
  const auto uses = [&](AdapterId adapter) {
    return adapter == kBaseModel || std::ranges::find(used, adapter) != used.end();
  };
  for (size_t i = 0; i < order.size() && used.size() < most; ++i)
    if (const AdapterId adapter = state[order[i]].adapter; !uses(adapter)) used.push_back(adapter);
  std::ranges::stable_sort(std::span(order).subspan(state.running.size()), {}, [&](RequestIndex i) {
    const Request& request = state[i];
    return std::pair(request.priority, !uses(request.adapter) && !waited_long(request));
  });
}

class UnmergedPolicy final : public Policy {
 public:
  explicit UnmergedPolicy(const PolicyOptions& options)
      : most_(options.max_adapters), tolerance_(options.tolerance) {}
  std::string name() const override { return "unmerged"; }
  PolicyPlan plan(const PolicyState& state, TimePoint now) const override {
    PolicyPlan plan{.order = fcfs_order(state)};
    if (most_ > 0)
      cluster(plan.order, state, static_cast<size_t>(most_),
              [&](const Request& request) { return now - request.arrival > tolerance_; });
    return plan;
  }

 private:
  const int most_;
  const Duration tolerance_;
};

}  // namespace

std::vector<RequestIndex> fcfs_order(const PolicyState& state) {
  std::vector<RequestIndex> order;
  order.reserve(state.size());
  const auto running = static_cast<RequestIndex>(state.running.size());
  const auto append_running = [&](bool decodes) {
    for (RequestIndex i = 0; i < running; ++i)
      if ((state[i].remaining_tokens() <= 1) == decodes) order.push_back(i);
  };
  // Decodes first, because each takes one token of the budget; long prefills get the rest.
  append_running(true);
  append_running(false);
  for (RequestIndex i = running; i < state.size(); ++i) order.push_back(i);
  const auto priority = [&](RequestIndex i) { return state[i].priority; };
  std::ranges::stable_sort(std::span(order).subspan(running), {}, priority);
  return order;
}

std::unique_ptr<Policy> make_unmerged_policy(const PolicyOptions& options) {
  return std::make_unique<UnmergedPolicy>(options);
}

}  // namespace valora::scheduler
