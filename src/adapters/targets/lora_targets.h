// Matches an adapter's configuration against the tensors in its file.
#pragma once

#include <string>
#include <vector>

#include "adapters/adapter_spec.h"
#include "adapters/folder/adapter_contents.h"

namespace valora::adapters {

// The adapted linears by module, ascending. Every module with tensors must be a target of the
// configuration, with the configured rank and the module's shapes. Targets without tensors add a
// warning; if other layers have tensors for the same kind of linear, the file is incomplete. Error:
// kUnprocessable naming the module.
Result<std::vector<LoraTarget>> resolve_targets(const TargetRules& rules,
                                                const AdapterContents& contents,
                                                const ModuleTable& modules,
                                                const AdapterLimits& limits,
                                                std::vector<std::string>& warnings);

}  // namespace valora::adapters
