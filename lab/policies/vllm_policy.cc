// vLLM's scheduling: unmerged, first come, first served, with a fixed number of adapters per step.
#include <algorithm>

#include "scheduler/policies/step_batch.h"

namespace valora::bench {

using namespace scheduler;

namespace {

class VllmPolicy final : public Policy {
 public:
  explicit VllmPolicy(const PolicyOptions& options)
      : max_adapters_(options.max_adapters > 0 ? static_cast<size_t>(options.max_adapters) : 1) {}
  std::string name() const override { return "vllm"; }

  // Takes requests in order, as long as their adapters are among the first max_adapters.
  PolicyPlan plan(const PolicyState& state, TimePoint) const override {
    PolicyPlan plan{.order = fcfs_order(state)};
    std::vector<AdapterId> adapters;
    std::erase_if(plan.order, [&](RequestIndex i) {
      const AdapterId adapter = state[i].adapter;
      if (adapter == kBaseModel || std::ranges::find(adapters, adapter) != adapters.end())
        return false;
      if (adapters.size() == max_adapters_) return true;
      adapters.push_back(adapter);
      return false;
    });
    return plan;
  }

 private:
  const size_t max_adapters_;
};

}  // namespace

std::unique_ptr<Policy> make_vllm_policy(const PolicyOptions& options) {
  return std::make_unique<VllmPolicy>(options);
}

}  // namespace valora::bench
