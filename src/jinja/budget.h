// The limits on the cost of a rendering, and a count that stops it at them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace valora::jinja {

// Limits on the cost of templates and their data. Templates come with third-party models, data from
// clients.
inline constexpr size_t kMaxSourceBytes = size_t{1} << 20;
inline constexpr int kMaxExpressionDepth = 100;  // depth of one expression's tree
inline constexpr int kMaxStatementDepth = 50;    // nested blocks
// Active expressions, blocks and macro calls.
inline constexpr int kMaxEvaluationDepth = 300;
// Nodes evaluated, values visited and 64-byte units read.
inline constexpr size_t kMaxSteps = 4'000'000;
// Extra steps per byte of a conversation: some templates iterate over characters.
inline constexpr size_t kStepsPerByte = 16;
inline constexpr size_t kMaxMoreSteps = 36'000'000;
inline constexpr size_t kMaxBytes = size_t{512} << 20;       // all values of one rendering
inline constexpr size_t kMaxStringBytes = size_t{16} << 20;  // one string, or the output
inline constexpr int kMaxValueDepth = 100;                   // nested lists
inline constexpr int64_t kMaxRange = 100'000;                // as in jinja2's sandbox

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
