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
  if (state != kEnded) add(request.names_, counts_[state]);
  if (request.state_ != kNew) remove(request.names_, counts_[request.state_]);
  request.state_ = state;
}

// Adds all names, or none if memory runs out.
void AdapterActivity::add(const std::vector<std::string>& names, Counts& counts) {
  size_t added = 0;
  try {
    for (; added < names.size(); ++added) ++counts[names[added]];
  } catch (...) {
    remove({names.data(), added}, counts);
    throw;
  }
}

void AdapterActivity::remove(std::span<const std::string> names, Counts& counts) {
  for (const std::string& name : names) {
    const auto found = counts.find(name);
    if (--found->second == 0) counts.erase(found);
  }
}

std::set<std::string> AdapterActivity::names(State state) const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> names;
  for (const auto& [name, _] : counts_[state]) names.insert(name);
  return names;
}

}  // namespace valora::server
