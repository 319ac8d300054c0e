// The makers of the product's policies, one per source; policy.cc has their table.
#pragma once

#include <memory>

#include "scheduler/policies/policy.h"

namespace valora::scheduler {

std::unique_ptr<Policy> make_unmerged_policy(const PolicyOptions& options);
std::unique_ptr<Policy> make_merged_policy(const PolicyOptions& options);
std::unique_ptr<Policy> make_mixture_policy(const PolicyOptions& options);
std::unique_ptr<Policy> make_valora_policy(const PolicyOptions& options);

}  // namespace valora::scheduler
