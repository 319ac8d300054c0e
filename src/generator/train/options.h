// Training options.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json/json.h"

namespace valora::generator {

struct TrainingOptions {
  int64_t steps = 300;  // optimizer steps
  int64_t batch = 32;   // samples per step
  // Most tokens per forward pass. If needed, a step takes several passes and accumulates gradients.
  int64_t tokens_per_pass = 4096;
  double learning_rate = 2e-4;  // maximum over the schedule
  double warmup = 0.05;         // fraction of the steps
  double weight_decay = 0.01, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double clip = 1;         // maximum gradient norm; 0: no clipping
  double dropout = 0;      // on the inputs of the low-rank products
  bool recompute = false;  // activation checkpointing per layer
  // Most logits (answer tokens × vocabulary) held in memory. Beyond this they are computed in
  // chunks, which are recomputed in the backward pass.
  int64_t logits_at_once = 1 << 25;
  bool shuffle = true;
  uint64_t seed = 0;
  int64_t evaluate_every = 0;    // steps; 0: only at the end
  int64_t patience = 3;          // evaluations without improvement before early stopping
  int64_t checkpoint_every = 0;  // steps; 0: only at the end and after a stop
  size_t visual_cache_bytes = size_t{2} << 30;
};

Json to_json(const TrainingOptions& options);  // the options that affect results

}  // namespace valora::generator
