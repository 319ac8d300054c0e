// LRU cache of tensors, keyed by a digest of their inputs.
#pragma once

#include <ATen/ATen.h>

#include <list>
#include <unordered_map>

#include "base/digest.h"

namespace valora {

// Evicts the least recently used entries beyond the capacity (bytes). A tensor in use stays alive
// with its holder. Not thread-safe.
class TensorCache {
 public:
  explicit TensorCache(size_t capacity_bytes) : capacity_(capacity_bytes) {}

  bool contains(const Digest& key) const { return index_.contains(key); }
  // Undefined if the key is missing.
  at::Tensor find(const Digest& key);
  void insert(const Digest& key, at::Tensor tensor);
  size_t bytes() const { return bytes_; }
  size_t entries() const { return index_.size(); }
  uint64_t queries() const { return queries_; }
  uint64_t hits() const { return hits_; }

 private:
  struct Entry {
    Digest key;
    at::Tensor tensor;
  };
  size_t capacity_;
  size_t bytes_ = 0;
  uint64_t queries_ = 0, hits_ = 0;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<Digest, std::list<Entry>::iterator> index_;
};

}  // namespace valora
