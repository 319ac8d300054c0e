#include "engine/memory/tensor_cache.h"

namespace valora {

at::Tensor TensorCache::find(const Digest& key) {
  ++queries_;
  const auto it = index_.find(key);
  if (it == index_.end()) return {};
  ++hits_;
  entries_.splice(entries_.begin(), entries_, it->second);
  return it->second->tensor;
}

void TensorCache::insert(const Digest& key, at::Tensor tensor) {
  if (index_.contains(key)) return;
  const size_t bytes = tensor.nbytes();
  if (bytes > capacity_) return;
  // Built before it is inserted, so that a failed allocation changes nothing.
  std::list<Entry> added;
  added.push_front({key, std::move(tensor)});
  index_.emplace(key, added.begin());
  entries_.splice(entries_.begin(), added);
  bytes_ += bytes;
  while (bytes_ > capacity_ && !entries_.empty()) {
    bytes_ -= entries_.back().tensor.nbytes();
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

}  // namespace valora
