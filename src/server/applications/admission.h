// The limits of one application.
#pragma once

#include <mutex>
#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "server/applications/application.h"
#include "server/applications/token_bucket.h"

namespace valora::server {

// Thread-safe.
class Admission {
 public:
  struct Refusal {
    Error error;            // kQueueFull
    int retry_seconds = 1;  // at least 1
  };

  // Both must outlive it.
  Admission(const Application& application, const Clock& clock);

  // Counts a request as waiting, unless a limit forbids it. A request that max_waiting refuses
  // takes nothing from the rate.
  std::optional<Refusal> admit();
  void waits_no_more();
  int waiting() const;

 private:
  const Application& application_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::optional<TokenBucket> bucket_;
  int waiting_ = 0;
};

}  // namespace valora::server
