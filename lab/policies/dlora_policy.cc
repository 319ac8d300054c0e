// dLoRA's dynamic batching (OSDI '24): merged while one adapter has most of the requests, unmerged
// otherwise. The merge threshold adapts: it drops after a merge that lasted long enough to pay for
// itself, and rises after one that did not.
#include <algorithm>

#include "scheduler/policies/step_batch.h"

namespace valora::bench {

using namespace scheduler;

namespace {

constexpr double kFirstThreshold = 0.5, kLowest = 0.3, kHighest = 0.95;
constexpr double kRises = 0.1, kFallsBy = 0.9;
// A merge pays for itself after this many steps.
constexpr AdapterId kStepsThatPay = 16;

// The threshold, and the steps since the current merge, in the two numbers that a policy may keep.
struct Memory {
  explicit Memory(const PolicyMemory& stored)
      : threshold(stored.saved == 0 ? kFirstThreshold : stored.saved),
        steps(stored.target - kBaseModel) {}
  PolicyMemory stored() const { return {.target = kBaseModel + steps, .saved = threshold}; }

  double threshold;
  AdapterId steps;
};

class DloraPolicy final : public Policy {
 public:
  explicit DloraPolicy(const PolicyOptions& options) : tolerance_(options.tolerance) {}
  std::string name() const override { return "dlora"; }
  bool merges() const override { return true; }

  PolicyPlan plan(const PolicyState& state, TimePoint now) const override {
    PolicyPlan plan{.order = fcfs_order(state)};
    Memory memory(state.memory);
    const auto counts = count_merges(state, plan.order);
    const AdapterId merged = state.weights.merged;
    if (merged != kBaseModel) {
      if (share_of(merged, counts, state, plan.order) > 0 &&
          !starves(state, plan.order, merged, now))
        return merged_plan(state, std::move(plan), merged, memory);
      const bool paid = memory.steps >= kStepsThatPay;
      memory.threshold = std::clamp(paid ? memory.threshold * kFallsBy : memory.threshold + kRises,
                                    kLowest, kHighest);
      memory.steps = 0;
      plan.memory = memory.stored();
      return plan;
    }
    const auto most = std::ranges::max_element(counts, {}, &std::pair<AdapterId, int>::second);
    if (most != counts.end() && !starves(state, plan.order, most->first, now) &&
        share_of(most->first, counts, state, plan.order) > memory.threshold)
      return merged_plan(state, std::move(plan), most->first, memory);
    plan.memory = memory.stored();
    return plan;
  }

 private:
  static PolicyPlan merged_plan(const PolicyState& state, PolicyPlan plan, AdapterId adapter,
                                Memory memory) {
    plan.mode = Mode::kMerged;
    plan.merged = adapter;
    ++memory.steps;
    plan.memory = memory.stored();
    std::erase_if(plan.order, [&](RequestIndex i) { return state[i].merge != adapter; });
    return plan;
  }

  static double share_of(AdapterId adapter, const std::vector<std::pair<AdapterId, int>>& counts,
                         const PolicyState& state, const std::vector<RequestIndex>& order) {
    const auto it = std::ranges::find(counts, adapter, &std::pair<AdapterId, int>::first);
    if (it == counts.end()) return 0;
    return static_cast<double>(it->second) / batch_of(state, order, {}).requests;
  }

  // True if a request excluded by the adapter's merge has waited longer than its tolerance.
  bool starves(const PolicyState& state, const std::vector<RequestIndex>& order, AdapterId adapter,
               TimePoint now) const {
    return std::ranges::any_of(order, [&](RequestIndex i) {
      const Request& request = state[i];
      const Duration most = request.tolerance > Duration{} ? request.tolerance : tolerance_;
      return request.merge != adapter &&
             now - std::max(request.arrival, request.last_scheduled) > most;
    });
  }

  const Duration tolerance_;
};

}  // namespace

std::unique_ptr<Policy> make_dlora_policy(const PolicyOptions& options) {
  return std::make_unique<DloraPolicy>(options);
}

}  // namespace valora::bench
