// The time of a step as a linear function of its shape: what policies compare modes by, and what
// the simulator advances its clock by.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "scheduler/costs/step_shape.h"

namespace valora::scheduler {

// Seconds per unit of a StepShape. Measured (`valora tune --cost`), published, or derived from the
// sizes of a model.
struct StepCosts {
  double step = 0;   // per step: mostly reading the weights
  double token = 0;  // per token
  // Per token without logits, and per token with logits, beyond the first free_tokens of a step,
  // whose arithmetic hides behind reading the weights. A step of both kinds shares the free ones by
  // their numbers.
  double prefill_token = 0, decode_token = 0;
  double free_tokens = 0;
  double prefill_context = 0, decode_context = 0;  // per attended key
  double segment = 0;                              // per adapter with low-rank products
  double rank = 0;                                 // per rank of such an adapter
  double token_rank = 0;                           // per rank that applies to a token
  double switching = 0;                            // per change of the weights in use
  double merge = 0, merged_rank = 0;               // per merge, and per rank of its adapter
  double restore = 0;                              // per restoring of overwritten base weights

  bool known() const { return step > 0; }
  // With everything that the shape says, and without what it does to the weights.
  double seconds(const StepShape& shape) const;
  double running_seconds(const StepShape& shape) const;

  Duration operator()(const StepShape& shape) const { return from_seconds(seconds(shape)); }
};

// The coefficients in the order of features_of(), with their names in files. free_tokens is none.
struct StepCostField {
  std::string_view name;
  double StepCosts::* value;
};
inline constexpr size_t kStepCostFields = 13;
std::span<const StepCostField, kStepCostFields> step_cost_fields();
// What each coefficient is multiplied by.
std::array<double, kStepCostFields> features_of(const StepShape& shape, double free_tokens);

}  // namespace valora::scheduler
