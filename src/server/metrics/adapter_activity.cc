#include "server/metrics/adapter_activity.h"

namespace valora::server {

AdapterActivity::Request::Request(std::shared_ptr<AdapterActivity> activity,
                                  const std::vector<AdapterUse>& uses)
    : activity_(std::move(activity)) {
  for (const AdapterUse& use : uses) names_.push_back(use.name);
}

void AdapterActivity::move(Request& request, State state) {
  const std::lock_guard lock(mutex_);
  if (state <= request.state_) return;
  for (const std::string& name : request.names_) {
    if (request.state_ != kNew) {
      auto& counts = counts_[request.state_];
      const auto found = counts.find(name);
      if (--found->second == 0) counts.erase(found);
    }
    if (state != kEnded) ++counts_[state][name];
  }
  request.state_ = state;
}

std::set<std::string> AdapterActivity::names(State state) const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> names;
  for (const auto& [name, _] : counts_[state]) names.insert(name);
  return names;
}

}  // namespace valora::server
