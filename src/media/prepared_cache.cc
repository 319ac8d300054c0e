#include "media/prepared_cache.h"

namespace valora::media {
namespace {

size_t bytes_of(const VisualInput& input) {
  return sizeof input + input.patches.size() * sizeof(float);
}

}  // namespace

Result<PreparedInput> PreparedCache::get(const Digest& digest,
                                         const std::function<Result<PreparedInput>()>& prepare) {
  std::promise<Result<PreparedInput>> promise;
  {
    std::unique_lock lock(mutex_);
    ++stats_.queries;
    if (const auto it = kept_.find(digest); it != kept_.end()) {
      ++stats_.hits;
      by_use_.splice(by_use_.begin(), by_use_, it->second);
      return it->second->input;
    }
    if (const auto it = under_way_.find(digest); it != under_way_.end()) {
      const Outcome outcome = it->second;
      lock.unlock();
      Result<PreparedInput> result = outcome.get();
      lock.lock();
      stats_.hits += result.ok();
      return result;
    }
    under_way_.emplace(digest, promise.get_future().share());
  }

  Result<PreparedInput> result = prepare();
  {
    const std::lock_guard lock(mutex_);
    under_way_.erase(digest);
    if (result.ok()) keep(digest, *result);
  }
  promise.set_value(result);
  return result;
}

void PreparedCache::keep(const Digest& digest, const PreparedInput& input) {
  const size_t bytes = bytes_of(*input);
  if (bytes > max_bytes_) return;
  by_use_.push_front({digest, input});
  kept_[digest] = by_use_.begin();
  bytes_ += bytes;
  while (bytes_ > max_bytes_) {
    bytes_ -= bytes_of(*by_use_.back().input);
    kept_.erase(by_use_.back().digest);
    by_use_.pop_back();
  }
}

LoaderStats PreparedCache::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace valora::media
