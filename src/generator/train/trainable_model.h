// A model that gradients flow through, and its prompts as serving makes them.
#pragma once

#include <memory>
#include <vector>

#include "engine/frontend.h"
#include "generator/train/example.h"
#include "models/registry.h"

namespace valora::generator {

struct TrainableModel {
  // Loads the model of the options (model_path, dtype, device, max_model_len, fetch and media
  // limits) in the form for training; its weights are views of the checkpoint where that has the
  // dtype.
  static Result<std::unique_ptr<TrainableModel>> open(const EngineOptions& options);

  // Prepares many on `threads` threads of its own. The first error, in the order of the requests,
  // is the result. progress: on one thread at a time.
  Result<std::vector<Example>> examples(
      std::vector<ExampleRequest> requests, int threads,
      const std::function<void(int done, int total)>& progress = {}) const;

  models::LoadedModel loaded;
  std::unique_ptr<Frontend> frontend;
  at::Device device = at::kCPU;
  int64_t max_tokens = 0;
};

}  // namespace valora::generator
