// A cache of prepared inputs by content digest, limited in bytes (LRU). Each input is prepared
// once, even if several threads request it at the same time. A preparation stops once no thread is
// waiting for it.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <unordered_map>

#include "media/fetch/loader.h"

namespace valora::media {

using PreparedInput = std::shared_ptr<const VisualInput>;

class PreparedCache {
 public:
  explicit PreparedCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  using Prepare = std::function<Result<PreparedInput>(const std::stop_token&)>;

  // Returns the cached input; or waits for another thread's preparation and returns its result; or
  // returns prepare()'s. Errors, thrown ones included, reach all waiting threads and are not
  // cached. If `stop` is requested, this call ends with kCancelled; a preparation it has started
  // continues if others wait for it.
  Result<PreparedInput> get(const Digest& digest, const Prepare& prepare,
                            const std::stop_token& stop = {});
  // The cached input; null on a miss. Only hits are counted.
  PreparedInput find(const Digest& digest);
  LoaderStats stats() const;

 private:
  struct InFlight {
    std::stop_source stop;  // requested once wanted is 0
    int wanted = 1;
    std::optional<Result<PreparedInput>> outcome;
    std::condition_variable_any ended;
  };
  using Work = std::shared_ptr<InFlight>;
  using Lock = std::unique_lock<std::mutex>;
  struct Entry {
    Digest digest;
    PreparedInput input;
  };

  // The caller holds the lock.
  PreparedInput find_kept(const Digest& digest);
  Result<PreparedInput> wait(Lock& lock, const Work& work, const std::stop_token& stop);
  Result<PreparedInput> run(Lock& lock, const Digest& digest, const Prepare& prepare,
                            const std::stop_token& stop);
  static void leave(InFlight& work);
  void keep(const Digest& digest, const PreparedInput& input);

  const size_t max_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> by_use_;  // most recently used first
  std::unordered_map<Digest, std::list<Entry>::iterator> kept_;
  std::unordered_map<Digest, Work> in_flight_;
  size_t bytes_ = 0;
  LoaderStats stats_;
};

}  // namespace valora::media
