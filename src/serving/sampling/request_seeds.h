// The seeds of requests that bring none.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace valora::serving {

// With a seed of the server: the seed of the n-th such request is a function of the two, so
// requests that come in the same order draw the same. Without: at random. Thread-safe.
class RequestSeeds {
 public:
  explicit RequestSeeds(std::optional<int64_t> server) : server_(server) {}
  uint64_t next();

 private:
  const std::optional<int64_t> server_;
  std::atomic<uint64_t> requests_ = 0;
};

}  // namespace valora::serving
