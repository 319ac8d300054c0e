// The policies of rival systems, beside which the product's are measured.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "scheduler/policies/policy.h"

namespace valora::bench {

// One of
//  - dlora: merged or unmerged, by the share of the most frequent adapter and an adaptive threshold
//    (dLoRA, OSDI '24). PolicyOptions::tolerance: how long a request may be left out at once.
//  - vllm: unmerged, first come, first served, at most PolicyOptions::max_adapters adapters per
//  step
//    (0: vLLM's default, 1); requests for others wait.
// or of scheduler::policies(). kInvalidArgument for any other name.
Result<std::unique_ptr<scheduler::Policy>> make_compared_policy(
    const std::string& name, const scheduler::PolicyOptions& options = {});

}  // namespace valora::bench
