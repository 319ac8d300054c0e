// The time of a step as a linear function of its shape. Policies compare modes by it, and the
// simulator advances its clock by it.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "scheduler/costs/step_shape.h"

namespace valora::scheduler {

// Seconds per unit of a StepShape. Measured (`valora tune --cost`), published, or derived from a
// model's sizes.
struct StepCosts {
  double step = 0;   // per step: mostly reading the weights
  double token = 0;  // per token
  // Per token without logits, and per token with logits, beyond the first free_tokens of a step,
  // whose arithmetic is hidden by reading the weights. In a step with both kinds, the free tokens
  // are divided in proportion.
  double prefill_token = 0, decode_token = 0;
  double free_tokens = 0;
  double prefill_context = 0, decode_context = 0;  // per attended key
  double segment = 0;                              // per adapter with low-rank products
  double rank = 0;                                 // per rank of such an adapter
  double token_rank = 0;                           // per rank that applies to a token
  double switching = 0;                            // per change of the weights in use
  double merge = 0, merged_rank = 0;               // per merge, and per rank of its adapter
  double restore = 0;                              // per restore of overwritten base weights

  bool known() const { return step > 0; }
  // Total time of the shape; running_seconds() excludes the changes to the weights.
  double seconds(const StepShape& shape) const;
  double running_seconds(const StepShape& shape) const;

  Duration operator()(const StepShape& shape) const { return from_seconds(seconds(shape)); }
};

// The coefficients in the order of features_of(), with their names in files; excludes free_tokens.
struct StepCostField {
  std::string_view name;
  double StepCosts::* value;
};
inline constexpr size_t kStepCostFields = 13;
std::span<const StepCostField, kStepCostFields> step_cost_fields();
// The factor of each coefficient.
std::array<double, kStepCostFields> features_of(const StepShape& shape, double free_tokens);

}  // namespace valora::scheduler
