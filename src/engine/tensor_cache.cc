#include "engine/tensor_cache.h"

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
  bytes_ += tensor.nbytes();
  entries_.push_front({key, std::move(tensor)});
  index_[key] = entries_.begin();
  while (bytes_ > capacity_ && !entries_.empty()) {
    bytes_ -= entries_.back().tensor.nbytes();
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

}  // namespace valora
