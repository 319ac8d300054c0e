#include "adapters/targets/known_targets.h"

#include <utility>

namespace valora::adapters {

Result<KnownTargets::Modules> KnownTargets::of(
    const Digest& key, const std::function<Result<std::vector<int>>()>& match) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
  }
  // Without the lock: a hostile configuration takes seconds.
  VALORA_TRY(found, match());
  auto modules = std::make_shared<const std::vector<int>>(std::move(found));
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMost) known_.clear();
  known_[key] = modules;
  return modules;
}

}  // namespace valora::adapters
