#include "lab/trace/systems.h"

namespace valora::bench {

scheduler::StepCosts a100_costs() {
  constexpr double kBytes = 2.0e12, kOperations = 312e12 / 2, kWeights = 14e9;
  constexpr double kTokens = 4096, kRank = 64;
  constexpr double kBaseSeconds = 0.140 / 0.61, kDloraSeconds = 0.140, kAtmm = 3.4;
  scheduler::StepCosts costs;
  costs.step = 2 * kWeights / kBytes;
  costs.prefill_token = kBaseSeconds / kTokens;
  costs.decode_token = kWeights / kOperations;
  costs.prefill_context = 4.0 * 32 * 4096 / kOperations;
  costs.decode_context = 0.5e6 / kBytes;
  costs.token_rank = kDloraSeconds / kAtmm / (kTokens * kRank);
  costs.segment = 5e-4;
  costs.switching = 1e-3;
  costs.merge = 5e-3;
  costs.restore = 5e-3;
  return costs;
}

const std::vector<TraceSystem>& trace_systems() {
  static const std::vector<TraceSystem> all{
      {.name = "valora", .meaning = "Algorithm 1 over measured costs", .policy = "valora"},
      {.name = "unmerged", .meaning = "first come, first served", .policy = "unmerged"},
      {.name = "merged", .meaning = "one adapter at a time", .policy = "merged"},
      {.name = "mixture", .meaning = "all, one adapter merged", .policy = "mixture"},
      {.name = "dlora", .meaning = "dLoRA's policy, our operators", .policy = "dlora"},
      {.name = "vllm", .meaning = "4 adapters per step", .policy = "vllm", .max_adapters = 4},
      {.name = "valora without prefix cache",
       .meaning = "each turn computes its whole prompt",
       .policy = "valora",
       .prefix_caching = false,
       .asked_only = true},
      {.name = "dLoRA system",
       .meaning = "its policy, operators and merges",
       .policy = "dlora",
       .in_place = true,
       .operators = Operators::kDlora,
       .per_adapter = 4.5,
       .per_token = 3.4,
       .merge = 0.015,
       .restore = 0.027},
      {.name = "Punica system",
       .meaning = "first come, first served, its operators",
       .policy = "unmerged",
       .operators = Operators::kPunica,
       .per_adapter = 2.6,
       .per_token = 2.3},
      {.name = "S-LoRA system",
       .meaning = "clusters of 8 adapters, its operators",
       .policy = "unmerged",
       .max_adapters = 8,
       .operators = Operators::kSlora,
       .per_token = 2.7},
  };
  return all;
}

scheduler::StepCosts costs_of(const TraceSystem& system, scheduler::StepCosts ours) {
  ours.segment *= system.per_adapter;
  ours.rank *= system.per_adapter;
  ours.token_rank *= system.per_token;
  if (system.merge > 0) {
    ours.merge = system.merge;
    ours.merged_rank = 0;
  }
  if (system.restore > 0) ours.restore = system.restore;
  return ours;
}

}  // namespace valora::bench
