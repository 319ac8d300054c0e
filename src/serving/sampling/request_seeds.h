// Seeds for requests without one.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace valora::serving {

// With a server seed, the seed of the n-th such request is a function of both, so requests in the
// same order draw the same tokens. Without it, seeds are random. Thread-safe.
class RequestSeeds {
 public:
  explicit RequestSeeds(std::optional<int64_t> server) : server_(server) {}
  uint64_t next();

 private:
  const std::optional<int64_t> server_;
  std::atomic<uint64_t> requests_ = 0;
};

}  // namespace valora::serving
