#include "media/processors/prepared_cache.h"

#include "base/fault.h"
#include "media/video/stop.h"

namespace valora::media {
namespace {

size_t bytes_of(const VisualInput& input) {
  return (1 + input.parts.size()) * sizeof input + input.patches.size() * sizeof(float);
}

Result<PreparedInput> outcome_of(const PreparedCache::Prepare& prepare,
                                 const std::stop_token& unwanted) {
  try {
    return prepare(unwanted);
  } catch (const std::exception& e) {
    return fault("the media of the request could not be prepared", e);
  }
}

}  // namespace

PreparedInput PreparedCache::find_kept(const Digest& digest) {
  const auto it = kept_.find(digest);
  if (it == kept_.end()) return nullptr;
  ++stats_.hits;
  by_use_.splice(by_use_.begin(), by_use_, it->second);
  return it->second->input;
}

PreparedInput PreparedCache::find(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  PreparedInput found = find_kept(digest);
  stats_.queries += found != nullptr;
  return found;
}

Result<PreparedInput> PreparedCache::get(const Digest& digest, const Prepare& prepare,
                                         const std::stop_token& stop) {
  Lock lock(mutex_);
  ++stats_.queries;
  if (PreparedInput found = find_kept(digest)) return found;
  // Stopped work will yield no result, so it is started again.
  const auto it = in_flight_.find(digest);
  if (it != in_flight_.end() && !it->second->stop.stop_requested())
    return wait(lock, Work(it->second), stop);
  return run(lock, digest, prepare, stop);
}

void PreparedCache::leave(InFlight& work) {
  if (--work.wanted == 0) work.stop.request_stop();
}

Result<PreparedInput> PreparedCache::wait(Lock& lock, const Work& work,
                                          const std::stop_token& stop) {
  ++work->wanted;
  if (!work->ended.wait(lock, stop, [&] { return work->outcome.has_value(); })) {
    leave(*work);
    return stopped_error();
  }
  stats_.hits += work->outcome->ok();
  return *work->outcome;
}

Result<PreparedInput> PreparedCache::run(Lock& lock, const Digest& digest, const Prepare& prepare,
                                         const std::stop_token& stop) {
  const Work work = std::make_shared<InFlight>();
  in_flight_.insert_or_assign(digest, work);
  lock.unlock();
  {
    const std::stop_callback gone(stop, [&] {
      const std::lock_guard guard(mutex_);
      leave(*work);
    });
    Result<PreparedInput> outcome = outcome_of(prepare, work->stop.get_token());
    lock.lock();
    work->outcome = std::move(outcome);
    const auto it = in_flight_.find(digest);
    if (it != in_flight_.end() && it->second == work) in_flight_.erase(it);
    if (work->outcome->ok()) keep(digest, **work->outcome);
    // The stop callback may be waiting for the lock, and its destructor waits for the callback.
    lock.unlock();
  }
  work->ended.notify_all();
  return *work->outcome;
}

// If memory for the entry runs out, the input is not cached.
void PreparedCache::keep(const Digest& digest, const PreparedInput& input) {
  const size_t bytes = bytes_of(*input);
  if (bytes > max_bytes_ || kept_.contains(digest)) return;
  try {
    std::list<Entry> added;
    added.push_front({digest, input});
    kept_.emplace(digest, added.begin());
    by_use_.splice(by_use_.begin(), added);
  } catch (const std::bad_alloc&) {
    return;
  }
  bytes_ += bytes;
  while (bytes_ > max_bytes_) {
    bytes_ -= bytes_of(*by_use_.back().input);
    kept_.erase(by_use_.back().digest);
    by_use_.pop_back();
  }
}

LoaderStats PreparedCache::stats() const {
  const std::lock_guard lock(mutex_);
  LoaderStats stats = stats_;
  stats.bytes = bytes_;
  stats.entries = kept_.size();
  return stats;
}

}  // namespace valora::media
