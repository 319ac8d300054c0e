// Models servers of decoders on GPU ranks in simulated time: step costs and KV capacity, derived
// from published sizes and datasheets. Nothing here was measured.
//
//  - A GPU: an A100 with 80 GB, 2.04 TB/s and 312 TFLOPS in 16 bits, at 80 % and 60 % utilisation;
//    300 GB/s per direction over NVLink, at 77 % (measured on later GPUs by others).
//  - Ranks: weights, heads and their arithmetic are divided; each layer has two all-reduces of
//    2 (N - 1) / N of its outputs, each of which takes 10 µs in addition to its bytes (vLLM's
//    kernel: 9 µs).
//  - Adapters: split as ranks do (S-LoRA §6, docs/ranks.md); a factor that is not split is read by
//    each rank.
//  - KV: the rest of 90 % of the memory after the weights and 1 GB of activations.
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

// The model names: 7b (Qwen-VL's decoder), 34b (LLaVA-NeXT's, Yi-34B).
std::vector<std::string> simulated_models();
// ranks: at least 1. Errors: kInvalidArgument if the model is unknown, its heads do not divide
// evenly among the ranks, or it does not fit.
Result<SimulatedGpus> simulated_gpus(const std::string& model, int ranks);

}  // namespace valora::bench
