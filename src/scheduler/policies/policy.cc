// The table of policies. Each has a file of its own, which defines the function in its row.
#include "scheduler/policies/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace valora::scheduler {

using MakePolicy = std::unique_ptr<Policy>(const PolicyOptions&);
// A build may compile their definitions together with this file, and before it.
// NOLINTNEXTLINE(readability-redundant-declaration)
MakePolicy make_unmerged_policy, make_merged_policy, make_mixture_policy, make_valora_policy;

namespace {

constexpr std::array kPolicies = {
    PolicyRow{"unmerged", "all requests run together", make_unmerged_policy},
    PolicyRow{"merged", "only the requests of the merged adapter run", make_merged_policy},
    PolicyRow{"mixture", "all requests run together, with one adapter merged", make_mixture_policy},
    PolicyRow{"valora", "which of these is the fastest per step, by measured costs",
              make_valora_policy},
};

}  // namespace

std::span<const PolicyRow> policies() { return kPolicies; }

Result<std::unique_ptr<Policy>> make_policy(const std::string& name, const PolicyOptions& options) {
  std::vector<std::string_view> known;
  for (const PolicyRow& row : kPolicies) {
    if (row.name == name) return row.make(options);
    known.push_back(row.name);
  }
  return invalid(fmt::format("--scheduling-policy (or --mode) \"{}\" is unknown; use one of {}",
                             name, fmt::join(known, ", ")),
                 "scheduling-policy");
}

}  // namespace valora::scheduler
