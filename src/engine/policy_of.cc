#include "engine/policy_of.h"

namespace valora {

Result<std::unique_ptr<scheduler::Policy>> policy_of(const SchedulingOptions& options) {
  return scheduler::make_policy(name_of(options.policy),
                                {.tolerance = from_seconds(options.tolerance),
                                 .merged_share = options.merged_share,
                                 .starving_share = options.starving_share,
                                 .merged_gain = options.merged_gain,
                                 .max_adapters = options.max_adapters});
}

}  // namespace valora
