#include "scheduler/costs/step_costs.h"

namespace valora::scheduler {
namespace {

constexpr std::array<StepCostField, kStepCostFields> kFields{{
    {"step", &StepCosts::step},
    {"token", &StepCosts::token},
    {"prefill_token", &StepCosts::prefill_token},
    {"decode_token", &StepCosts::decode_token},
    {"prefill_context", &StepCosts::prefill_context},
    {"decode_context", &StepCosts::decode_context},
    {"segment", &StepCosts::segment},
    {"rank", &StepCosts::rank},
    {"token_rank", &StepCosts::token_rank},
    {"switching", &StepCosts::switching},
    {"merge", &StepCosts::merge},
    {"merged_rank", &StepCosts::merged_rank},
    {"restore", &StepCosts::restore},
}};

}  // namespace

std::span<const StepCostField, kStepCostFields> step_cost_fields() { return kFields; }

std::array<double, kStepCostFields> features_of(const StepShape& s, double free_tokens) {
  const auto tokens = static_cast<double>(s.tokens());
  const double beyond = tokens > free_tokens ? (tokens - free_tokens) / tokens : 0;
  return {1.0,
          tokens,
          (s.prefill_tokens - s.scored_tokens) * beyond,
          (s.decode_tokens + s.scored_tokens) * beyond,
          static_cast<double>(s.prefill_context),
          static_cast<double>(s.decode_context),
          static_cast<double>(s.segments),
          static_cast<double>(s.ranks),
          static_cast<double>(s.token_ranks),
          s.switches ? 1.0 : 0.0,
          s.merges ? 1.0 : 0.0,
          s.merges ? static_cast<double>(s.merged_rank) : 0.0,
          s.restores ? 1.0 : 0.0};
}

double StepCosts::seconds(const StepShape& shape) const {
  const auto features = features_of(shape, free_tokens);
  double sum = 0;
  for (size_t i = 0; i < kStepCostFields; ++i) sum += this->*kFields[i].value * features[i];
  return sum;
}

double StepCosts::running_seconds(const StepShape& shape) const {
  StepShape running = shape;
  running.switches = running.merges = running.restores = false;
  return seconds(running);
}

}  // namespace valora::scheduler
