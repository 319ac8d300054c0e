// Training checkpoints. A resumed training gives the same result as an uninterrupted one.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "generator/train/optimizer.h"

namespace valora::generator {

struct TrainingState {
  int64_t step = 0;   // completed steps
  at::Tensor values;  // fp32, the adapter's
  OptimizerState optimizer;
  double first_loss = 0, last_loss = 0;
  std::optional<double> best_score;  // best evaluation so far
  int64_t best_step = 0;
  at::Tensor best_values;  // undefined before the first evaluation
  int64_t worse = 0;       // evaluations since the best one
  int64_t evaluated = 0;   // step of the last evaluation
  // Totals of all runs so far: time spent in steps and in evaluations, and samples processed in
  // steps.
  double seconds = 0, evaluation_seconds = 0;
  int64_t samples = 0;
};

// Writes one safetensors file atomically. identity: digest of everything that the training depends
// on.
Status write_checkpoint(const std::string& path, const TrainingState& state,
                        const std::string& identity);
// nullopt if there is no file. kUnprocessable if it belongs to another training or is malformed.
Result<std::optional<TrainingState>> read_checkpoint(const std::string& path,
                                                     const std::string& identity);

}  // namespace valora::generator
