// `valora quantize`: from a model folder to one whose decoder has linears in integers.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "api/options.h"
#include "base/result.h"

namespace valora::generator {

// Bits of weights and inputs, as compressed-tensors and vLLM name them.
enum class QuantiseScheme : uint8_t { kW4A16, kW8A16, kW8A8 };
Result<QuantiseScheme> parse_quantise_scheme(const std::string& name);
std::string name_of(QuantiseScheme scheme);

struct QuantiseOptions {
  EngineOptions engine;  // model_path; for samples also threads and media
  std::string output;
  QuantiseScheme scheme = QuantiseScheme::kW8A16;
  int64_t group = 0;  // inputs per scale; 0: 32 with 4 bits, 128 with 8
  // Samples by which weights are rounded so that outputs change least: the training samples of a
  // tasks file, and a text that is cut into windows. Without both, each weight is rounded for
  // itself.
  std::string tasks, text;
  int64_t samples = 128;  // at most; half of them of the text, if there are both
  // Bytes of the moments of inputs that are gathered in one pass over the samples.
  size_t moment_bytes = size_t{1} << 30;
};

struct QuantiseEvents {
  std::function<void(const std::string& what, int64_t done, int64_t total)> progress;
  std::stop_token stop;
};

struct QuantiseReport {
  int64_t linears = 0;
  int64_t samples = 0, tokens = 0;  // that the rounding was fitted to
  uint64_t bytes_before = 0, bytes_after = 0;
  double weight_error = 0;  // root of the squared error of all weights over their squares
};

// Writes the folder whole or not at all. kInvalidArgument: the output is there already, or options
// that do not fit. kUnprocessable: the model is not served, or is quantised already. kCancelled if
// a stop is requested.
Result<QuantiseReport> quantise_folder(const QuantiseOptions& options,
                                       const QuantiseEvents& events);

}  // namespace valora::generator
