// `valora quantize`: converts a model folder to one whose decoder linears are integers.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "api/options.h"
#include "base/result.h"

namespace valora::generator {

// Bits of weights and activations, named as in compressed-tensors and vLLM.
enum class QuantiseScheme : uint8_t { kW4A16, kW8A16, kW8A8 };
Result<QuantiseScheme> parse_quantise_scheme(const std::string& name);
std::string name_of(QuantiseScheme scheme);

struct QuantiseOptions {
  EngineOptions engine;  // model_path; with samples, also threads and media
  std::string output;
  QuantiseScheme scheme = QuantiseScheme::kW8A16;
  int64_t group = 0;  // inputs per scale; 0: 32 for 4 bits, 128 for 8
  // Samples used to round weights so that outputs change least: training samples of a tasks file,
  // and windows of a text. With neither, each weight is rounded on its own.
  std::string tasks, text;
  int64_t samples = 128;  // at most; with both sources, half of them from the text
  // Memory for the input moments gathered in one pass over the samples.
  size_t moment_bytes = size_t{1} << 30;
};

struct QuantiseEvents {
  std::function<void(const std::string& what, int64_t done, int64_t total)> progress;
  std::stop_token stop;
};

struct QuantiseReport {
  int64_t linears = 0;
  int64_t samples = 0, tokens = 0;  // used to fit the rounding
  uint64_t bytes_before = 0, bytes_after = 0;
  double weight_error = 0;  // root of the total squared weight error over the total squared weights
};

// Writes the folder atomically. kInvalidArgument: the output exists, or options contradict each
// other. kUnprocessable: the model is unsupported, or already quantised. kCancelled on a stop.
Result<QuantiseReport> quantise_folder(const QuantiseOptions& options,
                                       const QuantiseEvents& events);

}  // namespace valora::generator
