// Counts the cost of a rendering and stops it at the limits.
#pragma once

#include <algorithm>
#include <string>

#include "base/result.h"
#include "jinja/limits.h"

namespace valora::jinja {

// An error in the template or the data it is rendered with, reported as the request's error.
inline Error fault(std::string message) { return invalid(std::move(message), "messages"); }

class Budget {
 public:
  // Called before rendering: a long conversation gets more steps.
  void allow_for(size_t input_bytes) {
    steps_left_ += std::min(input_bytes, kMaxMoreSteps / kStepsPerByte) * kStepsPerByte;
  }
  Status step(size_t count = 1) {
    if (count > steps_left_)
      return fault("the template takes too many steps for a conversation of this length");
    steps_left_ -= count;
    return {};
  }
  // For work proportional to the bytes read.
  Status look_at(size_t bytes) { return step(1 + bytes / 64); }
  // Called before memory is allocated.
  Status take(size_t bytes) {
    if (bytes > bytes_left_)
      return fault("the template makes more than " + std::to_string(kMaxBytes >> 20) +
                   " MiB of values");
    bytes_left_ -= bytes;
    return {};
  }
  // Called before a string of `bytes` is created.
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
