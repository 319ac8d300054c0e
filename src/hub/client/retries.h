// When a failed request is sent again.
#pragma once

#include <chrono>
#include <optional>

#include "hub/client/transfer.h"

namespace valora::hub {

class Retries {
 public:
  // How long to wait before the next attempt; absent: give up. `progress`: bytes have come since
  // the last failure.
  std::optional<std::chrono::milliseconds> after(const Reply& reply, bool progress) {
    constexpr std::chrono::milliseconds kLongest = std::chrono::seconds(300);
    if (progress) failures_ = 0;
    if (!reply.may_pass() || ++failures_ > kMost) return {};
    const auto asked = reply.retry_after();
    if (asked > kLongest) return {};
    return std::max(asked, std::chrono::milliseconds(100) * (1 << (2 * failures_ - 2)));
  }

 private:
  static constexpr int kMost = 5;  // failures in a row: 0.1, 0.4, 1.6, 6.4 and 26 s
  int failures_ = 0;
};

}  // namespace valora::hub
