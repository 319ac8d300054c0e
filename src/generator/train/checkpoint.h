// A training on disk, so that it goes on as if it had never stopped.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "generator/train/optimizer.h"

namespace valora::generator {

struct TrainingState {
  int64_t step = 0;   // steps done
  at::Tensor values;  // fp32, the adapter's
  OptimizerState optimizer;
  double first_loss = 0, last_loss = 0;
  // Of the evaluations so far.
  std::optional<double> best_score;
  int64_t best_step = 0;
  at::Tensor best_values;  // undefined before the first one
  int64_t worse = 0;       // evaluations since the best
};

// One safetensors file, there whole or not at all. `identity`: of all that the training depends on.
Status write_checkpoint(const std::string& path, const TrainingState& state,
                        const std::string& identity);
// None where there is no file. kUnprocessable where it is of another training, or broken.
Result<std::optional<TrainingState>> read_checkpoint(const std::string& path,
                                                     const std::string& identity);

}  // namespace valora::generator
