// Joins what an adapter's configuration says with what its file holds.
#pragma once

#include <string>
#include <vector>

#include "adapters/adapter_contents.h"
#include "adapters/adapter_spec.h"

namespace valora::adapters {

// The adapted linears by module, ascending. Every module with tensors must be a target of the
// configuration, with its rank and the module's shapes, and every servable target must have
// tensors; other targets without tensors add a warning. Error: kUnprocessable naming the module.
Result<std::vector<LoraTarget>> resolve_targets(const TargetRules& rules,
                                                const AdapterContents& contents,
                                                const ModuleTable& modules,
                                                const AdapterLimits& limits,
                                                std::vector<std::string>& warnings);

}  // namespace valora::adapters
