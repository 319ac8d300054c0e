// A cache of prepared inputs by content digest, bounded in bytes, LRU. Each input is prepared once,
// even if several threads request it at the same time.
#pragma once

#include <functional>
#include <future>
#include <list>
#include <mutex>
#include <unordered_map>

#include "media/loader.h"

namespace valora::media {

using PreparedInput = std::shared_ptr<const VisualInput>;

class PreparedCache {
 public:
  explicit PreparedCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Returns the cached input, the result of another thread's current preparation (waits for it), or
  // prepare()'s. Errors go to all waiting threads and are not cached. prepare must not throw.
  Result<PreparedInput> get(const Digest& digest,
                            const std::function<Result<PreparedInput>()>& prepare);
  LoaderStats stats() const;

 private:
  using Outcome = std::shared_future<Result<PreparedInput>>;
  struct Entry {
    Digest digest;
    PreparedInput input;
  };

  void keep(const Digest& digest, const PreparedInput& input);

  const size_t max_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> by_use_;  // most recently used first
  std::unordered_map<Digest, std::list<Entry>::iterator> kept_;
  std::unordered_map<Digest, Outcome> under_way_;
  size_t bytes_ = 0;
  LoaderStats stats_;
};

}  // namespace valora::media
