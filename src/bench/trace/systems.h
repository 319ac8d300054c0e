// The schedulers and systems that a trace is run on: policies with this engine's own operators,
// and whole rival systems with theirs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/options.h"
#include "scheduler/policies/policy.h"

namespace valora::bench {

// The step costs of a model of 7 billion parameters in 16 bits on an A100 of 80 GB, from published
// figures. Nothing here was measured.
//  - step, decode_token: 14 GB of weights at 2.0 TB/s, at half the bound; 312 TFLOPS at half load.
//  - prefill_token: VaLoRA's figure 6: 140 ms are 61 % of the base's time for 4,096 tokens.
//  - context: 0.5 MB of KV per token at 2.0 TB/s; attention at half of 312 TFLOPS.
//  - token_rank, segment: dLoRA's 140 ms of figure 6 at rank 64, over 3.4, by which ATMM is faster
//    (VaLoRA §6.3.2).
//  - merge, switching: VaLoRA §4.4.1 and §6.3.2: 5 ms to merge, below 10 ms to switch.
scheduler::StepCosts a100_costs();

// What computes the low-rank products of the adapters.
enum class Operators : uint8_t { kOurs, kDlora, kPunica, kSlora };

struct TraceSystem {
  std::string name;
  std::string meaning;
  SchedulingPolicy policy = SchedulingPolicy::kValora;
  int max_adapters = 0;
  bool in_place = false;
  bool prefix_caching = true;
  bool asked_only = false;  // runs only if it is named
  // A system with other operators than ours runs on an engine only if it is named.
  Operators operators = Operators::kOurs;
  // In simulated time: extra seconds of the low-rank products relative to ours, per adapter of a
  // step (most of what decodes pay) and per token (of prompts mostly), and the seconds of a merge
  // and of restoring the base; 0: ours. On an engine all merge as the engine does.
  double per_adapter = 1, per_token = 1;
  double merge = 0, restore = 0;
};

// valora, unmerged, merged, mixture, dlora (its policy with our operators), vllm, valora without
// prefix caching (VaLoRA's figure 24); then dLoRA, Punica and S-LoRA with operators 3.4, 2.3
// and 2.7 times as slow per token and 4.5, 2.6 and 1 times per adapter (VaLoRA §6.3.2: on average,
// and in decode), and dLoRA's merge of 15 and restoring of 27 ms.
const std::vector<TraceSystem>& trace_systems();

// The costs of a system whose other costs are `ours`.
scheduler::StepCosts costs_of(const TraceSystem& system, scheduler::StepCosts ours);

}  // namespace valora::bench
