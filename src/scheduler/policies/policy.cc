#include "scheduler/policies/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>

namespace valora::scheduler {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Policy> (*make)(const PolicyOptions&);
};

constexpr std::array kPolicies = {
    Entry{"valora", make_valora_policy}, Entry{"unmerged", make_unmerged_policy},
    Entry{"merged", make_merged_policy}, Entry{"mixture", make_mixture_policy},
    Entry{"dlora", make_dlora_policy},   Entry{"vllm", make_vllm_policy},
};

}  // namespace

Result<std::unique_ptr<Policy>> make_policy(const std::string& name, const PolicyOptions& options) {
  std::vector<std::string_view> known;
  for (const Entry& entry : kPolicies) {
    if (entry.name == name) return entry.make(options);
    known.push_back(entry.name);
  }
  return invalid(fmt::format("unknown scheduling policy '{}'; known policies: {}", name,
                             fmt::join(known, ", ")),
                 "scheduling-policy");
}

}  // namespace valora::scheduler
