#include "lab/policies/policies.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace valora::bench {

using MakeRival = std::unique_ptr<scheduler::Policy>(const scheduler::PolicyOptions&);
MakeRival make_dlora_policy, make_vllm_policy;

namespace {

struct RivalRow {
  std::string_view name;
  MakeRival* make;
};

constexpr std::array kRivals = {RivalRow{"dlora", make_dlora_policy},
                                RivalRow{"vllm", make_vllm_policy}};

}  // namespace

Result<std::unique_ptr<scheduler::Policy>> make_compared_policy(
    const std::string& name, const scheduler::PolicyOptions& options) {
  const auto* row = std::ranges::find(kRivals, name, &RivalRow::name);
  if (row != kRivals.end()) return row->make(options);
  return scheduler::make_policy(name, options);
}

}  // namespace valora::bench
