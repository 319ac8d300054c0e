// The schedulers and systems on which a trace can run: policies with this engine's own operators,
// and whole rival systems with theirs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/policies/policy.h"

namespace valora::bench {

// Step costs of a 7-billion-parameter model in 16 bits on an A100 with 80 GB, from published
// figures. Nothing here was measured.
//  - step, decode_token: 14 GB of weights at 2.0 TB/s, at half the bound; 312 TFLOPS at 50 %
//    utilisation.
//  - prefill_token: VaLoRA's figure 6: 140 ms are 61 % of the base model's time for 4,096 tokens.
//  - context: 0.5 MB of KV per token at 2.0 TB/s; attention at half of 312 TFLOPS.
//  - token_rank, segment: dLoRA's 140 ms in figure 6 at rank 64, divided by 3.4, ATMM's speed-up
//    (VaLoRA §6.3.2).
//  - merge, switching: VaLoRA §4.4.1 and §6.3.2: 5 ms to merge, under 10 ms to switch.
scheduler::StepCosts a100_costs();

// Which system's operators compute the low-rank products.
enum class Operators : uint8_t { kOurs, kDlora, kPunica, kSlora };

struct TraceSystem {
  std::string name;
  std::string meaning;
  std::string policy = "valora";  // of make_compared_policy()
  int max_adapters = 0;
  bool in_place = false;
  bool prefix_caching = true;
  bool asked_only = false;  // runs only if named
  // On an engine, a system with operators other than ours runs only if it is named.
  Operators operators = Operators::kOurs;
  // In simulated time: factors on the time of our low-rank products, per adapter of a step
  // (dominant in decode) and per token (dominant in prefill), and the seconds of a merge and of
  // restoring the base model; 0: as ours. On an engine, all systems merge as the engine does.
  double per_adapter = 1, per_token = 1;
  double merge = 0, restore = 0;
};

// valora, unmerged, merged, mixture, dlora (its policy with our operators), vllm, and valora
// without prefix caching (VaLoRA's figure 24); then dLoRA, Punica and S-LoRA, with operators 3.4,
// 2.3 and 2.7 times as slow per token and 4.5, 2.6 and 1 times as slow per adapter (VaLoRA §6.3.2:
// on average, and in decode), and for dLoRA 15 ms to merge and 27 ms to restore.
const std::vector<TraceSystem>& trace_systems();

// The costs of a system, where `ours` are those of this engine.
scheduler::StepCosts costs_of(const TraceSystem& system, scheduler::StepCosts ours);

}  // namespace valora::bench
