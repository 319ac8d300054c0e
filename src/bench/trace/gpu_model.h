// Servers of decoders on ranks of GPUs, for simulated time: what their steps cost and how much KV
// they hold, from published sizes and datasheets. Nothing here was measured.
//
//  - A GPU: an A100 of 80 GB, 2.04 TB/s and 312 TFLOPS in 16 bits, used to 80 % and 60 %; 300 GB/s
//    per direction over NVLink, used to 77 % (measured on later GPUs by others).
//  - Ranks: weights, heads and their arithmetic are divided; each layer has two all-reduces of
//    2 (N - 1) / N of its outputs, and each takes 10 µs beside its bytes (vLLM's kernel: 9 µs).
//  - Adapters: as ranks split them (S-LoRA §6, docs/ranks.md); a whole factor is read by each rank.
//  - KV: what 90 % of the memory hold beside the weights and 1 GB of activations.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "scheduler/costs/step_costs.h"

namespace valora::bench {

struct SimulatedGpus {
  scheduler::StepCosts costs;
  int32_t pool_blocks = 0;  // of 16 tokens
};

// The names of the models: 7b (Qwen-VL's decoder), 34b (LLaVA-NeXT's, Yi-34B).
std::vector<std::string> simulated_models();
// ranks: at least 1. Errors: kInvalidArgument if the model is not known, its heads do not divide
// evenly among the ranks, or it does not fit.
Result<SimulatedGpus> simulated_gpus(const std::string& model, int ranks);

}  // namespace valora::bench
