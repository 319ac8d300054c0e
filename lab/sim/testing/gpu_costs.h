// Step costs for tests.
#pragma once

#include "scheduler/costs/step_costs.h"

namespace valora::sim::testing {

// Low-rank products cost a tenth of a step or more, as on the paper's GPUs.
inline constexpr scheduler::StepCosts kGpuCosts{.step = 0.020,
                                                .prefill_token = 1e-4,
                                                .decode_token = 2e-4,
                                                .rank = 1e-4,
                                                .token_rank = 1e-6,
                                                .merge = 0.010};

}  // namespace valora::sim::testing
