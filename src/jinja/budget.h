// Counts what a rendering costs and ends it at the limits.
#pragma once

#include <algorithm>
#include <string>

#include "base/result.h"
#include "jinja/limits.h"

namespace valora::jinja {

// A fault of the template or of the data it meets: the request's error.
inline Error fault(std::string message) { return invalid(std::move(message), "messages"); }

class Budget {
 public:
  // Before the start: a long conversation takes longer than a short one.
  void allow_for(size_t input_bytes) {
    steps_left_ += std::min(input_bytes, kMaxMoreSteps / kStepsPerByte) * kStepsPerByte;
  }
  Status step(size_t count = 1) {
    if (count > steps_left_)
      return fault("the template takes too many steps for a conversation of this length");
    steps_left_ -= count;
    return {};
  }
  // For work that grows with the bytes looked at.
  Status look_at(size_t bytes) { return step(1 + bytes / 64); }
  // Before memory is taken.
  Status take(size_t bytes) {
    if (bytes > bytes_left_)
      return fault("the template makes more than " + std::to_string(kMaxBytes >> 20) +
                   " MiB of values");
    bytes_left_ -= bytes;
    return {};
  }
  // Before a string of `bytes` is made.
  Status take_string(size_t bytes) {
    if (bytes > kMaxStringBytes)
      return fault("the template makes a string of more than " +
                   std::to_string(kMaxStringBytes >> 20) + " MiB");
    VALORA_CHECK(look_at(bytes));
    return take(bytes + 64);
  }

 private:
  size_t steps_left_ = kMaxSteps;
  size_t bytes_left_ = kMaxBytes;
};

}  // namespace valora::jinja
