// The lengths that the rotary frequencies of a step's tokens follow.
#pragma once

#include <ATen/ATen.h>

#include "scheduler/step_plan.h"

namespace valora {

// models::Batch::rope_lengths, on the host. Undefined if no token has other frequencies than those
// of short sequences.
at::Tensor rope_lengths(const scheduler::StepPlan& plan);

}  // namespace valora
