// Prepared inputs by content digest: kept up to a number of bytes, least recently used leave, and
// prepared once however many threads ask at once.
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

  // The kept input, that of another thread's preparation under way (waits for it), or prepare()'s.
  // Errors are given to all who wait and not kept. prepare must not throw.
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
  std::list<Entry> by_use_;  // most recent first
  std::unordered_map<Digest, std::list<Entry>::iterator> kept_;
  std::unordered_map<Digest, Outcome> under_way_;
  size_t bytes_ = 0;
  LoaderStats stats_;
};

}  // namespace valora::media
