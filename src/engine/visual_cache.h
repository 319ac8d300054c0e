// Visual embeddings by the digest of their pixels: an image is encoded once while it is cached.
#pragma once

#include <ATen/ATen.h>

#include <list>
#include <unordered_map>

#include "base/digest.h"

namespace valora {

// Least recently used entries leave above the capacity; a tensor in use lives on in its holder's
// hands. Not thread-safe: the engine thread owns it.
class VisualCache {
 public:
  explicit VisualCache(size_t capacity_bytes) : capacity_(capacity_bytes) {}

  // Undefined when it is not there.
  at::Tensor find(const Digest& key);
  void insert(const Digest& key, at::Tensor embeddings);
  size_t bytes() const { return bytes_; }
  uint64_t queries() const { return queries_; }
  uint64_t hits() const { return hits_; }

 private:
  struct Entry {
    Digest key;
    at::Tensor embeddings;
  };
  size_t capacity_;
  size_t bytes_ = 0;
  uint64_t queries_ = 0, hits_ = 0;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<Digest, std::list<Entry>::iterator> index_;
};

}  // namespace valora
