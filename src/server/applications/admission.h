// Enforces the limits of one application.
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

  // Both arguments must outlive this object.
  Admission(const Application& application, const Clock& clock);

  // Counts a request as waiting, unless a limit forbids it. A request rejected by max_waiting does
  // not consume any of the rate.
  std::optional<Refusal> admit();
  void end_waiting();
  int waiting() const;

 private:
  const Application& application_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::optional<TokenBucket> bucket_;
  int waiting_ = 0;
};

}  // namespace valora::server
