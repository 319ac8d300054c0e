#include <algorithm>
#include <tuple>

#include "scheduler/fcfs_order.h"

namespace valora::scheduler {
namespace {

bool before(const Request* a, const Request* b) {
  return std::tie(a->priority, a->arrival, a->id) < std::tie(b->priority, b->arrival, b->id);
}

// Who came first decides, be it running or waiting: were it the running ones, an adapter whose
// requests never cease would keep all others out.
const Request* oldest(const std::vector<const Request*>& requests) {
  return *std::min_element(requests.begin(), requests.end(), before);
}

class MergedPolicy final : public Policy {
 public:
  std::string name() const override { return "merged"; }
  bool merges() const override { return true; }

  PolicyPlan plan(const PolicyState& state, TimePoint) const override {
    PolicyPlan plan{Mode::kUnmerged, kBaseModel, fcfs_order(state)};
    if (plan.order.empty()) return plan;
    plan.merged = oldest(plan.order)->merge;
    if (plan.merged != kBaseModel) plan.mode = Mode::kMerged;
    std::erase_if(plan.order,
                  [&](const Request* request) { return request->merge != plan.merged; });
    return plan;
  }
};

}  // namespace

std::unique_ptr<Policy> make_merged_policy() { return std::make_unique<MergedPolicy>(); }

}  // namespace valora::scheduler
