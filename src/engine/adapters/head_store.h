// The task heads of loaded adapters, which lie outside the pool: shared by content, and bounded.
// Thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "adapters/adapter_spec.h"
#include "base/digest.h"
#include "base/labels.h"
#include "base/result.h"
#include "engine/adapters/adapter_tensors.h"

namespace valora {

class HeadStore {
 public:
  // limit: bytes of all heads together, on the device and in the host's memory.
  HeadStore(int64_t limit, at::Device device)
      : limit_(limit), device_(device), used_(std::make_shared<std::atomic<int64_t>>(0)) {}

  // The limit that goes with a pool: a quarter of it, and never less than 64 MiB. That is the share
  // that pinned adapters have: heads stay in memory as those do. A pool takes a quarter of the free
  // memory by default, so that heads of 1,000 labels over 4,096 states (16 MB) fit in by the dozen
  // on small machines, and what they take at most leaves the room that steps need.
  static int64_t limit_beside(int64_t pool_bytes);

  // The tensors of these heads in float, in their order. Heads of equal content share tensors and
  // labels; `heads` gets the shared labels. kUnprocessable, with the bytes: they do not fit.
  Result<std::vector<std::shared_ptr<const HeadTensors>>> add(
      std::vector<adapters::TaskHead>& heads);

  int64_t bytes() const { return *used_; }
  int64_t limit() const { return limit_; }

 private:
  struct Stored;

  Result<std::shared_ptr<const Stored>> store(const Digest& digest, const adapters::TaskHead& head);

  const int64_t limit_;
  const at::Device device_;
  const std::shared_ptr<std::atomic<int64_t>> used_;  // outlives this, as heads of requests do
  std::mutex mutex_;
  std::unordered_map<Digest, std::weak_ptr<const Stored>> stored_;
};

}  // namespace valora
