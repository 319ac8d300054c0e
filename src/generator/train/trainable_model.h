// A differentiable model, with prompts prepared as for serving.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "generator/train/example.h"
#include "models/registry.h"
#include "serving/prompts/frontend.h"

namespace valora::generator {

struct TrainableModel {
  // Loads the model with plain weights for training. Uses model_path, dtype, device, max_model_len,
  // and the fetch and media limits of the options. Weights are views of the checkpoint if the
  // dtypes match.
  static Result<std::unique_ptr<TrainableModel>> open(const EngineOptions& options);

  // Prepares examples on `threads` new threads. Returns the first error in request order;
  // kCancelled on a stop. progress: calls never overlap.
  Result<std::vector<Example>> examples(
      std::vector<ExampleRequest> requests, int threads,
      const std::function<void(int done, int total)>& progress = {},
      const std::stop_token& stop = {}) const;

  models::LoadedModel loaded;
  std::unique_ptr<serving::Frontend> frontend;
  at::Device device = at::kCPU;
  bool adaptive_threads = false;  // fewer while other programs use the cores
  int64_t max_tokens = 0;
};

}  // namespace valora::generator
