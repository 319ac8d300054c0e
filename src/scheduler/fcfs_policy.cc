#include <algorithm>
#include <functional>
#include <iterator>

#include "scheduler/fcfs_order.h"

namespace valora::scheduler {
namespace {

class FcfsPolicy final : public Policy {
 public:
  std::string name() const override { return "fcfs"; }
  PolicyPlan plan(const PolicyState& state, TimePoint) const override {
    return {Mode::kUnmerged, kBaseModel, fcfs_order(state)};
  }
};

}  // namespace

std::vector<const Request*> fcfs_order(const PolicyState& state) {
  std::vector<const Request*> order;
  order.reserve(state.running.size() + state.waiting.size());
  // Decodes cost one token each: a long prefill takes what they leave.
  const auto decodes = [](const Request* request) { return request->remaining_tokens() <= 1; };
  std::ranges::copy_if(state.running, std::back_inserter(order), decodes);
  std::ranges::copy_if(state.running, std::back_inserter(order), std::not_fn(decodes));
  order.insert(order.end(), state.waiting.begin(), state.waiting.end());
  const auto waiting = order.begin() + static_cast<std::ptrdiff_t>(state.running.size());
  std::stable_sort(waiting, order.end(),
                   [](const Request* a, const Request* b) { return a->priority < b->priority; });
  return order;
}

std::unique_ptr<Policy> make_fcfs_policy() { return std::make_unique<FcfsPolicy>(); }

}  // namespace valora::scheduler
