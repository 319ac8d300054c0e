// How an adapter is trained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace valora::generator {

struct TrainingOptions {
  int64_t steps = 300;  // of the optimizer
  int64_t batch = 32;   // samples a step
  int64_t tokens_per_pass =
      4096;  // a step's samples run in as many passes as this needs, their gradients added up
  double learning_rate = 2e-4;  // the highest
  double warmup = 0.05;         // share of the steps
  double weight_decay = 0.01, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double clip = 1;     // the gradient's largest norm; 0: none
  double dropout = 0;  // of the low-rank products' inputs
  bool recompute =
      false;  // layers run again for their gradients instead of keeping what they computed
  int64_t logits_at_once =
      1 << 25;  // answers' tokens × vocabulary; of more, part after part, and again on the way back
  bool shuffle = true;
  uint64_t seed = 0;
  int64_t evaluate_every = 0;    // steps; 0: never before the end
  int64_t patience = 3;          // evaluations without a better one before the training stops
  int64_t checkpoint_every = 0;  // steps; 0: none
  size_t visual_cache_bytes = size_t{2} << 30;
};

Json to_json(const TrainingOptions& options);  // what results depend on

}  // namespace valora::generator
