// What adapters' configurations target, of all modules of a model. Thousands of adapters have a few
// configurations, and matching each with every linear of a mixture of experts takes milliseconds.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/digest.h"
#include "base/result.h"

namespace valora::adapters {

class KnownTargets {
 public:
  static constexpr size_t kMost = 64;  // configurations kept

  using Modules = std::shared_ptr<const std::vector<int>>;
  // The modules of a key, which `match` finds if the key is not known. Thread-safe. Errors are
  // those of `match`, and are not kept.
  Result<Modules> of(const Digest& key, const std::function<Result<std::vector<int>>()>& match);

 private:
  std::mutex mutex_;
  std::unordered_map<Digest, Modules> known_;
};

}  // namespace valora::adapters
